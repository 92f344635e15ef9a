// The table of all keys: what each may hold, its default, what it means, or why kilter does not take it.
#include "config/rule.h"

namespace kilter::config {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr std::string_view kTraining = "kilter quantizes trained models and does not train: remove this key";

Rule text() { return {.kind = Kind::text}; }
Rule flag() { return {.kind = Kind::flag}; }
Rule integer(double min, double max = kUnbounded) { return {.kind = Kind::integer, .min = min, .max = max}; }
Rule number(double min, double max = kUnbounded) { return {.kind = Kind::number, .min = min, .max = max}; }
Rule word(std::vector<std::string_view> words) { return {.kind = Kind::word, .words = std::move(words)}; }
Rule map(std::vector<Key> keys) { return {.kind = Kind::map, .keys = std::move(keys)}; }
Rule map_of(Rule other) {
    return {.kind = Kind::map, .other = std::make_shared<const Rule>(std::move(other))};
}
Rule list(Rule element) {
    element.list = true;
    return element;
}
Rule named(std::string_view name, Rule rule) {
    rule.name = name;
    return rule;
}
Rule refused() { return {}; }

Rule refusing(Rule rule, std::vector<std::pair<std::string_view, std::string_view>> words) {
    rule.refused_words = std::move(words);
    return rule;
}

Rule dataloader() {
    return named(
        "dataloader",
        map({
            {"batch_size", integer(1), "", "samples in one run; without it, what the model's inputs ask for"},
            {"last_batch", word({"rollover", "discard"}), "\"rollover\"",
             "the samples that do not fill a batch make a smaller one, or are left out"},
            {"shuffle", flag(), "false", "samples in an order drawn from random_seed"},
            {"distributed", flag(), "false", "accepted without effect: one process reads all samples"},
            {"dataset",
             {.kind = Kind::component},
             "",
             "where samples come from: a name and its settings",
             {},
             true},
            {"transform",
             {.kind = Kind::components},
             "{}",
             "what is done to each sample, in this order; a list of maps may name a transform twice"},
            {"filter", {.kind = Kind::components}, "{}", "accepted without effect: all samples are taken"},
        }));
}

Rule configs() {
    return named(
        "configs",
        map({
            {"cores_per_instance", integer(1), "",
             "cores for each instance; without it the cores are shared evenly"},
            {"num_of_instance", integer(1), "1", "how many runs go on at the same time"},
            {"inter_num_of_threads", integer(1), "",
             "accepted without effect: kilter has one pool of threads"},
            {"intra_num_of_threads", integer(1), "",
             "threads of one instance; the same as cores_per_instance"},
            {"kmp_blocktime", integer(0), "",
             "accepted without effect: kilter does not run on Intel's OpenMP"},
            {"kmp_affinity", text(), "", "accepted without effect: kilter does not run on Intel's OpenMP"},
        }));
}

Rule postprocess() {
    return map({{"transform",
                 {.kind = Kind::components},
                 "{}",
                 "what is done to outputs and labels before the metric sees them"}});
}

Rule dtypes() { return list(word({"int8", "uint8", "fp32", "bf16", "fp16"})); }
Rule granularities() { return list(word({"per_channel", "per_tensor", "channel-wise", "tensor-wise"})); }

Rule operator_options() {
    Rule bit = list(number(0, 7));
    bit.above_min = true;
    return named(
        "operator",
        map({
            {"weight",
             map({
                 {"granularity", granularities(), "[\"per_channel\", \"per_tensor\"]",
                  "one scale for each output channel, or one for the whole tensor; the last two are MXNet's words"},
                 {"scheme",
                  refusing(list(word({"sym", "asym"})),
                           {{"asym_float", "floating-point zero points are PyTorch's own: write sym"}}),
                  "[\"sym\"]", "weights are always symmetric; asym is accepted without effect"},
                 {"dtype", dtypes(), "[\"int8\", \"fp32\"]", "what the operator may compute in"},
                 {"algorithm", list(word({"minmax", "kl"})), "[\"minmax\"]",
                  "weights always use their extremes; kl is accepted without effect"},
                 {"bit", bit, "7.0", "bits of a weight besides its sign; 7.0 is all of an int8"},
             }),
             "{}", "what weights may become"},
            {"activation",
             map({
                 {"granularity", granularities(), "[\"per_tensor\"]",
                  "activations always have one scale for the whole tensor; per_channel is accepted without effect"},
                 {"scheme", list(word({"sym", "asym"})), "[\"asym\", \"sym\"]",
                  "zero point in the middle of the integers, or where the range puts it"},
                 {"dtype", dtypes(), "[\"uint8\", \"int8\", \"fp32\"]", "what the operator may compute in"},
                 {"algorithm",
                  list(word({"minmax", "kl", "percentile", "mse", "naive", "entropy", "placeholder"})),
                  "[\"minmax\", \"kl\"]",
                  "how the range is chosen; percentile and mse are kilter's own, naive and entropy MXNet's names of the first two"},
                 {"compute_dtype", dtypes(), "[\"uint8\"]",
                  "accepted without effect: it concerns dynamic quantization"},
             }),
             "{}", "what activations may become"},
        }));
}

Rule precisions() { return list(word({"fp32", "bf16", "fp16"})); }

Rule mixed_precision() {
    return named("mixed_precision", map({
                                        {"precisions", precisions(), "[\"fp32\"]",
                                         "floating-point types operators may use; fp16 is not there yet"},
                                        {"op_wise", map_of(operator_options()), "{}",
                                         "the same for operators by name, as in quantization"},
                                    }));
}

Rule model() {
    return map({
        {"path", text(), "", "the model file (kilter's own key: a program handed the old tool its model)"},
        {"name", text(), "\"\"", "how reports call the model"},
        {"framework",
         word({"tensorflow", "inteltensorflow", "tensorflow_itex", "pytorch", "pytorch_fx", "pytorch_ipex",
               "mxnet", "onnxrt_qlinearops", "onnxrt_integerops", "onnxrt_qdq", "onnxrt_qoperator", "NA"}),
         "\"NA\"", "where the model comes from; NA: told by the file"},
        {"inputs", list(text()), "[]", "names of the inputs, for TensorFlow graphs"},
        {"outputs", list(text()), "[]", "names of the outputs, for TensorFlow graphs"},
    });
}

Rule quantization() {
    const std::string_view dynamic =
        "kilter quantizes activations over calibrated ranges: write post_training_static_quant";
    return map({
        {"approach",
         refusing(word({"post_training_static_quant"}),
                  {{"post_training_dynamic_quant", dynamic}, {"quant_aware_training", kTraining}}),
         "\"post_training_static_quant\"", "how the model is quantized"},
        {"calibration",
         map({
             {"sampling_size", list(integer(1)), "[100]",
              "samples to calibrate with; several values multiply the search"},
             {"dataloader", dataloader(), "", "the samples"},
         }),
         "{}", "where ranges of activations come from"},
        {"recipes",
         map({
             {"scale_propagation_max_pooling", flag(), "true",
              "accepted; pooling always keeps its input's scale"},
             {"scale_propagation_concat", flag(), "true", "accepted; concatenation always shares one scale"},
             {"first_conv_or_matmul_quantization", flag(), "true",
              "false keeps operators that read the inputs in floating point"},
             {"last_conv_or_matmul_quantization", flag(), "true",
              "false keeps the last products before the outputs in floating point"},
             {"fast_bias_correction", flag(), "true", "shift biases by the mean error of rounded weights"},
             {"weight_correction", flag(), "false", "accepted without effect: bias correction does the work"},
             {"equalization", flag(), "false", "even out channel ranges between convolutions (kilter's own)"},
             {"smooth_quant", flag(), "false", "move outliers of activations into the weights"},
             {"smooth_alpha", number(0, 1), "0.5", "how much of them (kilter's own)"},
             {"overflow_safe", flag(), "false", "for machines without VNNI (kilter's own)"},
         }),
         "{}", "what is done besides rounding"},
        {"advance",
         map({{"bias_correction", word({"weight_empirical"}), "\"weight_empirical\"",
               "the same as recipes.fast_bias_correction"}}),
         "{}", "older place of a recipe"},
        {"model_wise", operator_options(), "{}", "what every operator may become"},
        {"optype_wise", map_of(operator_options()), "{}",
         "the same by operator type; replaces model_wise for that type"},
        {"op_wise", map_of(operator_options()), "{}",
         "the same by operator name; a key with other characters than letters, digits and _ . - / is a regular "
         "expression for the beginning of names"},
        {"train", refused(), "", "", kTraining},
    });
}

Rule evaluation() {
    Rule several = map_of({});
    several.keys = {
        {"weight", list(number(0)), "",
         "one for each metric: their weighted mean is judged; without, each on its own"},
        {"higher_is_better", list(flag()), "", "one for each metric; without, what the metric says itself"},
    };
    return map({
        {"accuracy",
         map({
             {"metric", {.kind = Kind::component}, "", "what is judged: a name and its settings"},
             {"multi_metrics", several, "", "several metrics, instead of one"},
             {"iteration", integer(-1), "-1", "batches to evaluate; -1: all"},
             {"configs", configs(), "{}", "how runs share the machine"},
             {"dataloader", dataloader(), "", "the samples"},
             {"postprocess", postprocess(), "{}", "between model and metric"},
         }),
         "{}", "how good a model is"},
        {"performance",
         map({
             {"warmup", integer(0), "5", "runs before the clock starts"},
             {"iteration", integer(-1), "-1", "runs to measure; -1: all"},
             {"configs", configs(), "{}", "how runs share the machine"},
             {"dataloader", dataloader(), "", "the samples"},
             {"postprocess", postprocess(), "{}", "accepted; it is not part of what is measured"},
         }),
         "{}", "how fast a model is"},
    });
}

Rule accuracy_criterion() {
    return map({
        {"relative",
         {.kind = Kind::number,
          .min = -1,
          .max = 1,
          .exclusive = true,
          .percent = true,
          .hint = "a relative loss of one percent is written 0.01 or 1%"},
         "0.01",
         "largest loss as a share of the FP32 model's result; negative: an improvement is demanded"},
        {"absolute",
         {.kind = Kind::number, .percent = true},
         "",
         "largest loss in units of the metric, instead of relative"},
        {"higher_is_better", flag(), "", "which way the metric counts; without, what the metric says itself"},
    });
}

Rule tuning() {
    const std::string_view sigopt = "SigOpt was a remote service; kilter searches on this machine";
    const Rule objective = word({"performance", "accuracy", "footprint", "modelsize"});
    Rule diagnosis = map({
        {"diagnosis_after_tuning", flag(), "false", "compare tensors of both models when tuning is done"},
        {"op_list", list(text()), "[]", "operators to look at"},
        {"iteration_list", list(integer(1)), "[1]", "batches to look at"},
        {"inspect_type", word({"activation", "weight", "all"}), "\"activation\"", "which tensors"},
        {"save_to_disk", flag(), "true", "write them to files"},
        {"save_path", text(), "\"\"", "where to; empty: into the workspace"},
    });
    diagnosis.or_flag = true;
    return map({
        {"strategy",
         map({
             {"name",
              refusing(text(), {{"sigopt", sigopt},
                                {"hawq_v2", "it needs gradients, which kilter does not compute"}}),
              "\"auto\"", "the search strategy; strategies that a program registered count as well"},
             {"accuracy_weight", number(0), "1.0", "weight of accuracy in the loss of tpe"},
             {"latency_weight", number(0), "1.0", "weight of latency in the loss of tpe"},
             {"options", map_of({}), "{}", "whatever else a strategy asks for (kilter's own)"},
             {"sigopt_api_token", refused(), "", "", sigopt},
             {"sigopt_project_id", refused(), "", "", sigopt},
             {"sigopt_experiment_name", refused(), "", "", sigopt},
         }),
         "{}", "how models are searched for"},
        {"accuracy_criterion", accuracy_criterion(), "{}", "the promise: relative or absolute, not both"},
        {"objective", objective, "\"performance\"",
         "what is made small, or large, among models that keep the promise"},
        {"multi_objectives",
         map({
             {"objective",
              list(objective),
              "[\"performance\"]",
              "several objectives, instead of one",
              {},
              true},
             {"weight", list(number(0)), "", "one for each"},
             {"higher_is_better", list(flag()), "", "one for each; without, what the objective means itself"},
         }),
         "", "several objectives, instead of one"},
        {"exit_policy",
         map({
             {"timeout", number(0), "",
              "seconds; 0: stop at the first model that keeps the promise; without it the strategy decides"},
             {"max_trials", integer(1), "100", "models to try at most"},
             {"performance_only", flag(), "false", "take the first model whatever its accuracy"},
         }),
         "{}", "when the search ends"},
        {"random_seed", integer(0), "1978", "of everything that is drawn"},
        {"tensorboard", flag(), "false", "accepted without effect: the workspace holds the report"},
        {"workspace",
         map({
             {"path", text(), "\"\"", "directory of the study; empty: a new one"},
             {"resume", text(), "\"\"", "the workspace or journal to go on with"},
         }),
         "{}", "where the study is kept"},
        {"diagnosis", diagnosis, "false", "look at tensors after tuning"},
    });
}

}  // namespace

const Rule& schema() {
    static const Rule rule = map({
        {"version", {.kind = Kind::anything}, "1.0", "accepted, not read"},
        {"model", model(), "{}", "what is tuned"},
        {"device", refusing(word({"cpu"}), {{"gpu", "kilter computes on CPUs"}}), "\"cpu\"", "where it runs"},
        {"quantization", quantization(), "{}", "how it is quantized"},
        {"evaluation", evaluation(), "{}", "how it is judged"},
        {"tuning", tuning(), "{}", "how the best model is searched for"},
        {"mixed_precision", mixed_precision(), "", "floating-point types besides FP32"},
        {"graph_optimization", mixed_precision(), "", "older name of mixed_precision"},
        {"pruning", refused(), "", "", "kilter does not prune: it would have to train the model again"},
        {"distillation", refused(), "", "", kTraining},
        {"auto_distillation", refused(), "", "", kTraining},
        {"nas", refused(), "", "", "kilter does not search architectures: it would have to train them"},
        {"model_conversion", refused(), "", "",
         "models of quantization-aware training are ONNX QDQ files to kilter and run as they are"},
    });
    return rule;
}

}  // namespace kilter::config
