#include "kilter/config/config.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/fail.h"
#include "config/operator_rules.h"
#include "config/rule.h"
#include "config/yaml.h"

namespace kilter {
namespace {

// An empty section for the keys of sections that are not there.
const Settings& section(const Settings& parent, std::string_view key) {
    static const Settings kNothing;
    const Settings* found = parent.find(key);
    return found == nullptr ? kNothing : *found;
}

std::vector<std::string> texts(const Settings& parent, std::string_view key) {
    std::vector<std::string> values;
    if (const Settings* list = parent.find(key))
        for (const Settings& item : list->as_list()) values.push_back(item.as_text());
    return values;
}

std::optional<bool> maybe_flag(const Settings& parent, std::string_view key) {
    const Settings* value = parent.find(key);
    return value == nullptr ? std::nullopt : std::optional(value->as_bool());
}

// `topk: 5` is short for `topk: {k: 5}`, and so on; others take a bare value as it is.
Component component(const std::string& name, const Settings& settings) {
    if (name == "topk" && settings.is_number())
        return {name, Settings(Settings::Map{{"k", settings}}).at(settings.where())};
    return {name, settings};
}

Component only_component(const Settings& map) {
    return component(map.as_map()[0].first, map.as_map()[0].second);
}

std::vector<Component> components(const Settings& parent, std::string_view key) {
    std::vector<Component> all;
    if (const Settings* list = parent.find(key))
        for (const Settings& item : list->as_list()) all.push_back(only_component(item));
    return all;
}

// Fills a Config from settings that have been checked against the table of keys.
class Reader {
  public:
    Config read(const Settings& root) {
        read_model(section(root, "model"));
        read_quantization(section(root, "quantization"));
        read_accuracy(section(section(root, "evaluation"), "accuracy"));
        read_performance(section(section(root, "evaluation"), "performance"));
        read_tuning(section(root, "tuning"));
        read_mixed_precision(root);
        return std::move(config_);
    }

  private:
    void read_model(const Settings& model) {
        config_.model.path = model.get("path", "");
        config_.model.name = model.get("name", "");
        config_.model.framework = model.get("framework", "NA");
        config_.model.inputs = texts(model, "inputs");
        config_.model.outputs = texts(model, "outputs");
    }

    std::optional<LoaderConfig> loader(const Settings& parent) {
        const Settings* settings = parent.find("dataloader");
        if (settings == nullptr) return std::nullopt;
        LoaderConfig loader;
        if (const Settings* size = settings->find("batch_size")) loader.batch_size = size->as_int();
        if (settings->get("last_batch", "rollover") == "discard") loader.last_batch = LastBatch::discard;
        loader.shuffle = settings->get("shuffle", false);
        loader.distributed = settings->get("distributed", false);
        loader.dataset = only_component(settings->get("dataset"));
        loader.transforms = components(*settings, "transform");
        loader.filters = components(*settings, "filter");
        if (loader.distributed)
            note(settings->get("distributed"), "no effect: one process reads all samples");
        if (!loader.filters.empty()) note(settings->get("filter"), "no effect: all samples are taken");
        return loader;
    }

    void read_quantization(const Settings& quantization) {
        const Settings& calibration = section(quantization, "calibration");
        if (const Settings* sizes = calibration.find("sampling_size")) {
            config_.quantization.calibration.sampling_sizes = sizes->as_ints();
            require(!sizes->as_list().empty(), "{}: expected at least one number of samples", sizes->where());
        }
        config_.quantization.calibration.dataloader = loader(calibration);
        if (section(calibration, "dataloader").get("shuffle", false))
            note(calibration.get("dataloader").get("shuffle"),
                 "no effect: calibration takes the first samples, so that it can be repeated");
        read_recipes(section(quantization, "recipes"), section(quantization, "advance"));
        config_.quantization.rules = config::operator_rules(quantization, config_.notes);
    }

    void read_recipes(const Settings& settings, const Settings& advance) {
        Recipes& recipes = config_.quantization.recipes;
        recipes.bias_correction = settings.get("fast_bias_correction", recipes.bias_correction);
        if (advance.has("bias_correction")) recipes.bias_correction = true;
        recipes.float_first = !settings.get("first_conv_or_matmul_quantization", true);
        recipes.float_last = !settings.get("last_conv_or_matmul_quantization", true);
        recipes.equalization = settings.get("equalization", recipes.equalization);
        recipes.smooth_quant = settings.get("smooth_quant", recipes.smooth_quant);
        recipes.smooth_alpha = settings.get("smooth_alpha", recipes.smooth_alpha);
        recipes.overflow_safe = settings.get("overflow_safe", recipes.overflow_safe);
        for (const char* key : {"scale_propagation_max_pooling", "scale_propagation_concat"})
            if (!settings.get(key, true))
                note(settings.get(key),
                     "no effect: pooling and concatenation always keep their inputs' scale");
        if (settings.get("weight_correction", false))
            note(settings.get("weight_correction"), "no effect: bias correction does the work");
    }

    InstancesConfig instances(const Settings& parent) {
        const Settings& configs = section(parent, "configs");
        for (const char* key : {"inter_num_of_threads", "kmp_blocktime", "kmp_affinity"})
            if (const Settings* value = configs.find(key))
                note(*value, "no effect: it concerns threads of other runtimes");
        const int64_t threads = configs.get("intra_num_of_threads", 0);
        return {configs.get("num_of_instance", 1), configs.get("cores_per_instance", threads)};
    }

    void read_accuracy(const Settings& accuracy) {
        AccuracyConfig& result = config_.accuracy;
        const Settings* one = accuracy.find("metric");
        const Settings* several = accuracy.find("multi_metrics");
        if (one != nullptr && several != nullptr)
            throw Error(fmt::format("{}: there is 'metric', too", several->where()), "give one of the two");
        if (one != nullptr) result.metrics.push_back({only_component(*one)});
        if (several != nullptr) read_metrics(*several);
        result.iteration = accuracy.get("iteration", result.iteration);
        result.configs = instances(accuracy);
        result.dataloader = loader(accuracy);
        result.postprocess = components(section(accuracy, "postprocess"), "transform");
    }

    void read_metrics(const Settings& several) {
        for (const auto& [name, settings] : several.as_map())
            if (name != "weight" && name != "higher_is_better")
                config_.accuracy.metrics.push_back({component(name, settings)});
        auto& metrics = config_.accuracy.metrics;
        if (metrics.empty()) several.reject("metrics with their settings");
        if (const Settings* weights = several.find("weight")) {
            same_length(*weights, metrics.size(), "metrics");
            for (size_t i = 0; i < metrics.size(); ++i) metrics[i].weight = weights->as_list()[i].as_number();
            config_.accuracy.weighted = true;
        }
        if (const Settings* flags = several.find("higher_is_better")) {
            same_length(*flags, metrics.size(), "metrics");
            for (size_t i = 0; i < metrics.size(); ++i)
                metrics[i].higher_is_better = flags->as_list()[i].as_bool();
        }
    }

    void read_performance(const Settings& performance) {
        PerformanceConfig& result = config_.performance;
        result.warmup = performance.get("warmup", result.warmup);
        result.iteration = performance.get("iteration", result.iteration);
        result.configs = instances(performance);
        result.dataloader = loader(performance);
        result.postprocess = components(section(performance, "postprocess"), "transform");
    }

    void read_tuning(const Settings& tuning) {
        TuningConfig& result = config_.tuning;
        const Settings& strategy = section(tuning, "strategy");
        result.strategy.name = strategy.get("name", result.strategy.name);
        result.strategy.accuracy_weight = strategy.get("accuracy_weight", result.strategy.accuracy_weight);
        result.strategy.latency_weight = strategy.get("latency_weight", result.strategy.latency_weight);
        result.strategy.options = section(strategy, "options");
        if (const Settings* name = strategy.find("name")) result.strategy.where = name->where();
        read_criterion(section(tuning, "accuracy_criterion"));
        read_objectives(tuning);
        const Settings& exit = section(tuning, "exit_policy");
        if (const Settings* timeout = exit.find("timeout")) result.exit_policy.timeout = timeout->as_number();
        result.exit_policy.max_trials = exit.get("max_trials", result.exit_policy.max_trials);
        result.exit_policy.performance_only = exit.get("performance_only", false);
        result.random_seed = tuning.get("random_seed", result.random_seed);
        result.tensorboard = tuning.get("tensorboard", false);
        if (result.tensorboard) note(tuning.get("tensorboard"), "no effect: the workspace holds the report");
        result.workspace = section(tuning, "workspace").get("path", "");
        result.resume = section(tuning, "workspace").get("resume", "");
        read_diagnosis(tuning.find("diagnosis"));
    }

    void read_criterion(const Settings& settings) {
        CriterionConfig& criterion = config_.tuning.accuracy_criterion;
        const Settings* absolute = settings.find("absolute");
        if (absolute != nullptr && settings.has("relative"))
            throw Error(fmt::format("{}: there is 'relative', too", absolute->where()),
                        "give one of the two");
        criterion.relative = absolute == nullptr;
        criterion.loss =
            absolute != nullptr ? absolute->as_number() : settings.get("relative", criterion.loss);
        criterion.higher_is_better = maybe_flag(settings, "higher_is_better");
    }

    static ObjectiveConfig::Kind objective_kind(const std::string& name) {
        using enum ObjectiveConfig::Kind;
        if (name == "accuracy") return accuracy;
        if (name == "footprint") return footprint;
        return name == "modelsize" ? modelsize : performance;
    }

    void read_objectives(const Settings& tuning) {
        auto& objectives = config_.tuning.objectives;
        const Settings* several = tuning.find("multi_objectives");
        if (several == nullptr) {
            objectives = {{objective_kind(tuning.get("objective", "performance"))}};
            return;
        }
        if (tuning.has("objective"))
            throw Error(fmt::format("{}: there is 'objective', too", several->where()),
                        "give one of the two");
        objectives.clear();
        for (const std::string& name : texts(*several, "objective"))
            objectives.push_back({objective_kind(name)});
        if (objectives.empty()) several->get("objective").reject("at least one objective");
        if (const Settings* weights = several->find("weight")) {
            same_length(*weights, objectives.size(), "objectives");
            for (size_t i = 0; i < objectives.size(); ++i)
                objectives[i].weight = weights->as_list()[i].as_number();
        }
        if (const Settings* flags = several->find("higher_is_better")) {
            same_length(*flags, objectives.size(), "objectives");
            for (size_t i = 0; i < objectives.size(); ++i)
                objectives[i].higher_is_better = flags->as_list()[i].as_bool();
        }
    }

    void read_diagnosis(const Settings* settings) {
        if (settings == nullptr || (settings->is_bool() && !settings->as_bool())) return;
        DiagnosisConfig diagnosis;
        if (settings->is_bool()) {
            diagnosis.after_tuning = true;
        } else {
            diagnosis.after_tuning = settings->get("diagnosis_after_tuning", false);
            diagnosis.op_list = texts(*settings, "op_list");
            if (const Settings* list = settings->find("iteration_list"))
                diagnosis.iteration_list = list->as_ints();
            diagnosis.inspect_type = settings->get("inspect_type", diagnosis.inspect_type);
            diagnosis.save_to_disk = settings->get("save_to_disk", true);
            diagnosis.save_path = settings->get("save_path", "");
        }
        config_.tuning.diagnosis = std::move(diagnosis);
    }

    void read_mixed_precision(const Settings& root) {
        const Settings* settings = root.find("mixed_precision");
        const Settings* older = root.find("graph_optimization");
        if (settings != nullptr && older != nullptr)
            throw Error(fmt::format("{}: there is 'mixed_precision', too", older->where()),
                        "give one of the two");
        if (settings == nullptr) settings = older;
        if (settings == nullptr) return;
        MixedPrecisionConfig mixed;
        const Settings* list = settings->find("precisions");
        mixed.precisions =
            list == nullptr ? std::vector{Precision::f32} : config::precisions(*list, config_.notes);
        mixed.rules = config::operator_rules(*settings, config_.notes);
        config_.mixed_precision = std::move(mixed);
    }

    static void same_length(const Settings& list, size_t expected, std::string_view what) {
        require(list.as_list().size() == expected, "{}: has {} entries, there are {} {}", list.where(),
                list.as_list().size(), expected, what);
    }

    void note(const Settings& value, std::string_view text) {
        config_.notes.push_back(fmt::format("{}: {}", value.where(), text));
    }

    Config config_;
};

// Gives values that a program made their key path, for messages.
void locate(Settings& settings, const std::string& path) {
    if (settings.where().empty()) settings.at(path);
    if (settings.is_list()) {
        Settings::List list = settings.as_list();
        for (size_t i = 0; i < list.size(); ++i) locate(list[i], fmt::format("{}[{}]", path, i));
        settings = Settings(std::move(list)).at(settings.where());
    } else if (settings.is_map() && !settings.is_null()) {
        Settings::Map map = settings.as_map();
        for (auto& [key, value] : map) locate(value, path.empty() ? key : fmt::format("{}.{}", path, key));
        settings = Settings(std::move(map)).at(settings.where());
    }
}

Config from_tree(const Settings& tree) { return Reader().read(config::checked(tree, config::schema())); }

}  // namespace

Config read_config(const std::string& path) { return from_tree(read_yaml(path)); }

Config parse_config(std::string_view yaml, const std::string& name) {
    return from_tree(parse_yaml(yaml, name));
}

Config make_config(const Settings& settings) {
    Settings tree = settings;
    locate(tree, "");
    return from_tree(tree);
}

}  // namespace kilter
