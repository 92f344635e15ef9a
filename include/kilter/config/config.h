// Config: what a tuning job is told, as plain values. It is read from YAML files of LPOT and Intel Neural Compressor 1.x
// (docs/config.md lists every key), from Settings that a program or a command line made, or filled in by hand.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kilter/base/settings.h"
#include "kilter/quantization/quantize.h"

namespace kilter {

struct ModelConfig {
    std::string path;              // the file to tune; ours, for the old tool was handed a model by a program
    std::string name;              // how reports call it
    std::string framework = "NA";  // NA: told by the file
    std::vector<std::string> inputs, outputs;
};

//! What is done with the samples that do not fill a batch.
enum class LastBatch { rollover, discard };

struct LoaderConfig {
    std::optional<int64_t>
        batch_size;  // nothing said: what the model's inputs ask for, otherwise the caller's choice
    LastBatch last_batch = LastBatch::rollover;
    bool shuffle = false;
    bool distributed = false;
    Component dataset;  // no name: none was given
    std::vector<Component> transforms;
    std::vector<Component> filters;
};

//! What operators may become: all combinations of these are the search space, the first of each list the first choice.
struct OperatorRule {
    Override::Of of = Override::Of::model;
    std::string pattern;                // as Override has it
    std::vector<Precision> precisions;  // empty, here and below: nothing was said
    std::vector<Scheme> schemes;        // of activations
    std::vector<RangeAlgorithm> algorithms;
    std::vector<Granularity> granularities;  // of weights
    std::optional<int> bits;                 // of weights
    std::string where;                       // for messages

    //! Every combination, the first choice first. Floating point needs no further options.
    std::vector<Choice> choices() const;
};

struct CalibrationConfig {
    std::vector<int64_t> sampling_sizes{100};  // several multiply the search
    std::optional<LoaderConfig> dataloader;
};

struct QuantizationConfig {
    CalibrationConfig calibration;
    Recipes recipes;
    std::vector<OperatorRule>
        rules;  // model_wise, then optype_wise, then op_wise: the order to apply them in
};

struct MetricConfig {
    Component component;
    double weight = 1;
    std::optional<bool> higher_is_better;  // nothing said: what the metric says itself
};

//! How runs share the machine. 0: kilter decides.
struct InstancesConfig {
    int64_t instances = 1;
    int64_t cores_per_instance = 0;
};

struct AccuracyConfig {
    std::vector<MetricConfig> metrics;
    bool weighted = false;   // one weighted mean is judged; otherwise every metric must keep the promise
    int64_t iteration = -1;  // batches; -1: all
    InstancesConfig configs;
    std::optional<LoaderConfig> dataloader;
    std::vector<Component> postprocess;
};

struct PerformanceConfig {
    int64_t warmup = 5;
    int64_t iteration = -1;
    InstancesConfig configs;
    std::optional<LoaderConfig> dataloader;
    std::vector<Component> postprocess;
};

struct StrategyConfig {
    std::string name = "auto";
    double accuracy_weight = 1, latency_weight = 1;  // tpe
    Settings options;                                // for strategies that ask for more
    std::string where;                               // for messages
};

struct CriterionConfig {
    bool relative = true;
    double loss = 0.01;
    std::optional<bool> higher_is_better;  // nothing said: what the metric says itself
};

struct ObjectiveConfig {
    enum class Kind { performance, accuracy, footprint, modelsize } kind = Kind::performance;
    double weight = 1;
    std::optional<bool> higher_is_better;
};

struct ExitPolicyConfig {
    std::optional<double>
        timeout;  // seconds; 0: stop at the first success; nothing said: the strategy decides
    int64_t max_trials = 100;
    bool performance_only = false;
};

struct DiagnosisConfig {
    bool after_tuning = false;
    std::vector<std::string> op_list;
    std::vector<int64_t> iteration_list{1};
    std::string inspect_type = "activation";
    bool save_to_disk = true;
    std::string save_path;
};

struct TuningConfig {
    StrategyConfig strategy;
    CriterionConfig accuracy_criterion;
    std::vector<ObjectiveConfig> objectives{{}};
    ExitPolicyConfig exit_policy;
    int64_t random_seed = 1978;
    bool tensorboard = false;
    std::string workspace;  // a directory; empty: kilter makes one
    std::string resume;     // the journal of an earlier run; empty: none
    std::optional<DiagnosisConfig> diagnosis;
};

struct MixedPrecisionConfig {
    std::vector<Precision> precisions;
    std::vector<OperatorRule> rules;  // by operator name
};

struct Config {
    ModelConfig model;
    QuantizationConfig quantization;
    AccuracyConfig accuracy;
    PerformanceConfig performance;
    TuningConfig tuning;
    std::optional<MixedPrecisionConfig> mixed_precision;
    std::vector<std::string> notes;  // what was accepted but changes nothing here, and why
};

//! Reads a YAML file; it is never written to. Errors name file, line and key path, what is allowed and the nearest spelling.
Config read_config(const std::string& path);
//! The same for text; `name` stands for the file in errors.
Config parse_config(std::string_view yaml, const std::string& name = "config");
//! The same for a tree of settings that a program made.
Config make_config(const Settings& settings);

//! The rules as overrides of a plan, every one with its first choice.
std::vector<Override> first_choices(const Config& config);

//! The JSON Schema that describes the files; docs/config.schema.json holds the same text.
std::string config_schema();
//! What a configuration means, in lines for people.
std::string describe(const Config& config);

}  // namespace kilter
