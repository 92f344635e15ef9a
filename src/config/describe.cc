// What a configuration means, in lines for people: `kilter config FILE` prints it.
#include <fmt/format.h>

#include "kilter/config/config.h"

namespace kilter {
namespace {

class Lines {
  public:
    void add(std::string_view name, std::string text) { text_ += fmt::format("{:<13}{}\n", name, text); }
    std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

std::string text_of(const Settings& settings) {
    if (settings.is_list()) {
        std::vector<std::string> parts;
        for (const Settings& item : settings.as_list()) parts.push_back(text_of(item));
        return fmt::format("[{}]", fmt::join(parts, ", "));
    }
    if (settings.is_null()) return "";
    if (!settings.is_map()) return settings.is_text() ? settings.as_text() : settings.describe();
    std::vector<std::string> parts;
    for (const auto& [key, value] : settings.as_map())
        parts.push_back(fmt::format("{}: {}", key, text_of(value)));
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string text_of(const Component& component) {
    const std::string settings = text_of(component.settings);
    return settings.empty() ? component.name : fmt::format("{} ({})", component.name, settings);
}

void add_loader(Lines& lines, const std::optional<LoaderConfig>& loader) {
    if (!loader) return;
    std::string batch = loader->batch_size ? fmt::format(", batches of {}", *loader->batch_size) : "";
    if (loader->shuffle) batch += ", shuffled";
    if (loader->last_batch == LastBatch::discard) batch += ", an incomplete batch is left out";
    lines.add("", fmt::format("{}{}", text_of(loader->dataset), batch));
    for (const Component& transform : loader->transforms) lines.add("", "  " + text_of(transform));
    for (const Component& filter : loader->filters) lines.add("", "  only " + text_of(filter));
}

std::string_view direction(std::optional<bool> higher_is_better) {
    if (!higher_is_better) return "";
    return *higher_is_better ? ", higher is better" : ", lower is better";
}

template <class T>
void append(std::vector<std::string>& parts, const std::vector<T>& options) {
    if (options.empty()) return;
    std::vector<std::string_view> names;
    for (const T option : options) names.push_back(name(option));
    parts.push_back(fmt::format("{}", fmt::join(names, " or ")));
}

std::string text_of(const OperatorRule& rule) {
    std::string whom = "every operator";
    if (rule.of == Override::Of::type) whom = fmt::format("type {}", rule.pattern);
    if (rule.of == Override::Of::name) whom = rule.pattern;
    std::vector<std::string> parts;
    append(parts, rule.precisions);
    append(parts, rule.granularities);
    append(parts, rule.schemes);
    append(parts, rule.algorithms);
    if (rule.bits) parts.push_back(fmt::format("{} bits", *rule.bits));
    return fmt::format("{}: {}", whom,
                       parts.empty() ? "as it comes" : fmt::format("{}", fmt::join(parts, ", ")));
}

std::string text_of(const Recipes& recipes) {
    std::vector<std::string_view> on;
    if (recipes.bias_correction) on.emplace_back("bias-correction");
    if (recipes.equalization) on.emplace_back("equalization");
    if (recipes.smooth_quant) on.emplace_back("smooth-quant");
    if (recipes.overflow_safe) on.emplace_back("overflow-safe");
    if (recipes.float_first) on.emplace_back("float-first");
    if (recipes.float_last) on.emplace_back("float-last");
    return on.empty() ? "none" : fmt::format("{}", fmt::join(on, ", "));
}

std::string_view word(ObjectiveConfig::Kind kind) {
    using enum ObjectiveConfig::Kind;
    if (kind == accuracy) return "accuracy";
    if (kind == footprint) return "memory";
    return kind == modelsize ? "model size" : "latency";
}

void add_model(Lines& lines, const ModelConfig& model) {
    std::string text = model.name.empty() ? "(no name)" : model.name;
    if (!model.path.empty()) text += fmt::format(", file {}", model.path);
    if (model.framework != "NA") text += fmt::format(", from {}", model.framework);
    lines.add("model", text);
    if (!model.inputs.empty()) lines.add("", fmt::format("inputs {}", fmt::join(model.inputs, ", ")));
    if (!model.outputs.empty()) lines.add("", fmt::format("outputs {}", fmt::join(model.outputs, ", ")));
}

void add_accuracy(Lines& lines, const AccuracyConfig& accuracy) {
    if (accuracy.metrics.empty()) lines.add("metric", "none given");
    for (const MetricConfig& metric : accuracy.metrics)
        lines.add("metric",
                  fmt::format("{}{}{}", text_of(metric.component), direction(metric.higher_is_better),
                              accuracy.weighted ? fmt::format(", weight {}", metric.weight) : ""));
    if (accuracy.metrics.size() > 1)
        lines.add("", accuracy.weighted ? "their weighted mean is judged" : "each must keep the promise");
    if (accuracy.iteration >= 0) lines.add("", fmt::format("the first {} batches", accuracy.iteration));
    if (accuracy.configs.instances > 1)
        lines.add("", fmt::format("{} instances", accuracy.configs.instances));
    add_loader(lines, accuracy.dataloader);
    for (const Component& transform : accuracy.postprocess) lines.add("", "then " + text_of(transform));
}

void add_tuning(Lines& lines, const TuningConfig& tuning) {
    const CriterionConfig& criterion = tuning.accuracy_criterion;
    lines.add("promise", criterion.relative
                             ? fmt::format("at most {:g} % worse than FP32{}", 100 * criterion.loss,
                                           direction(criterion.higher_is_better))
                             : fmt::format("at most {:g} below FP32 in units of the metric{}", criterion.loss,
                                           direction(criterion.higher_is_better)));
    for (const ObjectiveConfig& objective : tuning.objectives)
        lines.add(
            "objective",
            fmt::format("{}{}{}", word(objective.kind), direction(objective.higher_is_better),
                        tuning.objectives.size() > 1 ? fmt::format(", weight {}", objective.weight) : ""));
    lines.add("strategy", tuning.strategy.name);
    const ExitPolicyConfig& exit = tuning.exit_policy;
    std::string end = fmt::format("when the strategy is done, or after {} trials", exit.max_trials);
    if (exit.performance_only)
        end = "after the first model, whatever its accuracy";
    else if (exit.timeout.value_or(0) > 0)
        end = fmt::format("after {:g} seconds or {} trials, with the best model by then", *exit.timeout,
                          exit.max_trials);
    else if (exit.timeout)
        end = fmt::format("at the first success, or after {} trials", exit.max_trials);
    lines.add("ends", end);
    lines.add("seed", fmt::format("{}", tuning.random_seed));
    if (!tuning.workspace.empty()) lines.add("workspace", tuning.workspace);
    if (!tuning.resume.empty()) lines.add("resumes", tuning.resume);
    if (tuning.diagnosis)
        lines.add("diagnosis", tuning.diagnosis->after_tuning ? "after tuning" : "on demand");
}

}  // namespace

std::string describe(const Config& config) {
    Lines lines;
    add_model(lines, config.model);
    const CalibrationConfig& calibration = config.quantization.calibration;
    lines.add("calibration", fmt::format("{} samples", fmt::join(calibration.sampling_sizes, " or ")));
    add_loader(lines, calibration.dataloader);
    for (const OperatorRule& rule : config.quantization.rules) lines.add("operators", text_of(rule));
    lines.add("recipes", text_of(config.quantization.recipes));
    if (config.mixed_precision) {
        std::vector<std::string> parts;
        append(parts, config.mixed_precision->precisions);
        lines.add("mixed", parts.empty() ? "" : parts[0]);
        for (const OperatorRule& rule : config.mixed_precision->rules) lines.add("", text_of(rule));
    }
    add_accuracy(lines, config.accuracy);
    const PerformanceConfig& performance = config.performance;
    lines.add("timing",
              fmt::format("{} runs to warm up{}{}", performance.warmup,
                          performance.iteration >= 0 ? fmt::format(", {} runs", performance.iteration) : "",
                          performance.configs.instances > 1
                              ? fmt::format(", {} instances", performance.configs.instances)
                              : ""));
    add_loader(lines, performance.dataloader);
    add_tuning(lines, config.tuning);
    for (const std::string& note : config.notes) lines.add("note", note);
    return lines.take();
}

}  // namespace kilter
