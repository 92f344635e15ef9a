// Configurations for Python: what a YAML file or a dict says, checked, as plain values.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "session.h"
#include "settings.h"

namespace kilter::python {
namespace {

using namespace nb::literals;

nb::dict to_dict(const Component& component) {
    nb::dict entry;
    entry[component.name.c_str()] = from_settings(component.settings);
    return entry;
}

nb::list to_list(const std::vector<Component>& components) {
    nb::list list;
    for (const Component& component : components) list.append(to_dict(component));
    return list;
}

nb::object to_object(const std::optional<LoaderConfig>& loader) {
    if (!loader) return nb::none();
    nb::dict entry;
    entry["dataset"] = loader->dataset.name.empty() ? nb::none() : nb::object(to_dict(loader->dataset));
    entry["transforms"] = to_list(loader->transforms);
    entry["batch_size"] = loader->batch_size;
    entry["drop_last"] = loader->last_batch == LastBatch::discard;
    entry["shuffle"] = loader->shuffle;
    return entry;
}

nb::dict to_dict(const InstancesConfig& configs) {
    nb::dict entry;
    entry["instances"] = configs.instances;
    entry["cores_per_instance"] = configs.cores_per_instance;
    return entry;
}

nb::dict to_dict(const AccuracyConfig& accuracy) {
    nb::list metrics;
    for (const MetricConfig& metric : accuracy.metrics) {
        nb::dict entry;
        entry["metric"] = to_dict(metric.component);
        entry["higher_is_better"] = metric.higher_is_better;
        metrics.append(entry);
    }
    nb::dict entry;
    entry["metrics"] = metrics;
    entry["iteration"] = accuracy.iteration;
    entry["configs"] = to_dict(accuracy.configs);
    entry["dataloader"] = to_object(accuracy.dataloader);
    entry["postprocess"] = to_list(accuracy.postprocess);
    return entry;
}

nb::dict to_dict(const PerformanceConfig& performance) {
    nb::dict entry;
    entry["warmup"] = performance.warmup;
    entry["iteration"] = performance.iteration;
    entry["configs"] = to_dict(performance.configs);
    entry["dataloader"] = to_object(performance.dataloader);
    return entry;
}

nb::dict to_dict(const TuningConfig& tuning) {
    nb::dict entry;
    entry["strategy"] = tuning.strategy.name;
    entry["timeout"] = tuning.exit_policy.timeout;
    entry["max_trials"] = tuning.exit_policy.max_trials;
    entry["performance_only"] = tuning.exit_policy.performance_only;
    entry["higher_is_better"] = tuning.accuracy_criterion.higher_is_better;
    entry["random_seed"] = tuning.random_seed;
    entry["workspace"] = tuning.workspace;
    entry["resume"] = tuning.resume;
    return entry;
}

nb::dict to_dict(const ModelConfig& model) {
    nb::dict entry;
    entry["path"] = model.path;
    entry["name"] = model.name;
    entry["framework"] = model.framework;
    entry["inputs"] = model.inputs;
    entry["outputs"] = model.outputs;
    return entry;
}

}  // namespace

std::optional<Config> config_of(const nb::object& config) {
    if (config.is_none()) return std::nullopt;
    if (nb::isinstance<nb::dict>(config)) return make_config(to_settings(config));
    return read_config(nb::cast<std::string>(config));
}

void bind_config(nb::module_& module) {
    module.def(
        "read_config",
        [](const nb::object& object) {
            const Config config = config_of(object).value_or(Config());
            nb::dict facts, calibration;
            calibration["sampling_sizes"] = config.quantization.calibration.sampling_sizes;
            calibration["dataloader"] = to_object(config.quantization.calibration.dataloader);
            facts["model"] = to_dict(config.model);
            facts["calibration"] = calibration;
            facts["accuracy"] = to_dict(config.accuracy);
            facts["performance"] = to_dict(config.performance);
            facts["tuning"] = to_dict(config.tuning);
            facts["notes"] = config.notes;
            return facts;
        },
        "config"_a.none());
}

}  // namespace kilter::python
