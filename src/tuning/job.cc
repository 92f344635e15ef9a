#include "kilter/tuning/job.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/fail.h"
#include "tuning/model_backend.h"

namespace kilter {
namespace {

constexpr int64_t kBatch = 8;

Objective::What what_of(ObjectiveConfig::Kind kind) {
    switch (kind) {
        case ObjectiveConfig::Kind::accuracy:
            return Objective::What::accuracy;
        case ObjectiveConfig::Kind::footprint:
            return Objective::What::footprint;
        case ObjectiveConfig::Kind::modelsize:
            return Objective::What::modelsize;
        case ObjectiveConfig::Kind::performance:
            break;
    }
    return Objective::What::performance;
}

// A metric whose direction the configuration says, against what the metric says itself.
class Directed : public Metric {
  public:
    Directed(std::unique_ptr<Metric> metric, bool higher_is_better)
        : metric_(std::move(metric)), higher_(higher_is_better) {}
    void reset() override { metric_->reset(); }
    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        metric_->update(outputs, labels);
    }
    double result() const override { return metric_->result(); }
    bool higher_is_better() const override { return higher_; }
    std::vector<double> per_sample() const override { return metric_->per_sample(); }
    std::pair<double, double> bounds() const override { return metric_->bounds(); }
    bool needs_reference() const override { return metric_->needs_reference(); }

  private:
    std::unique_ptr<Metric> metric_;
    bool higher_;
};

std::shared_ptr<Loader> make_loader(const LoaderConfig& config, const std::vector<Component>& postprocess,
                                    const std::string& framework, const std::vector<Port>& inputs,
                                    LoaderOptions options) {
    std::shared_ptr<const Dataset> dataset = make_dataset(config.dataset, inputs);
    Transforms transforms;
    for (const std::vector<Component>* list : {&config.transforms, &postprocess})
        for (const Component& component : *list) transforms.push_back(make_transform(component, framework));
    options.batch_size = config.batch_size.value_or(default_batch(inputs));
    options.drop_last = config.last_batch == LastBatch::discard;
    return std::make_shared<Loader>(std::move(dataset), std::move(transforms), options);
}

}  // namespace

int64_t default_batch(const std::vector<Port>& inputs) {
    if (inputs.empty() || !inputs[0].type.shape || inputs[0].type.shape->empty()) return 1;
    const Dim& first = inputs[0].type.shape->front();
    return first.known() ? first.value : kBatch;
}

std::function<BatchSource()> batches_of(std::shared_ptr<Loader> loader, int64_t most) {
    return [loader, most]() -> BatchSource {
        loader->rewind();
        auto left = std::make_shared<int64_t>(most);
        return [loader, left]() -> std::optional<Batch> {
            if (*left == 0) return std::nullopt;
            --*left;
            return loader->next();
        };
    };
}

TuneOptions tune_options(const Config& config) {
    TuneOptions options;
    const TuningConfig& tuning = config.tuning;
    options.criterion.relative = tuning.accuracy_criterion.relative;
    options.criterion.loss = tuning.accuracy_criterion.loss;
    if (config.accuracy.weighted)
        for (const MetricConfig& metric : config.accuracy.metrics)
            options.criterion.weights.push_back(metric.weight);
    options.objective.parts.clear();
    for (const ObjectiveConfig& objective : tuning.objectives)
        options.objective.parts.push_back({what_of(objective.kind), objective.weight});
    options.exit.timeout = tuning.exit_policy.timeout;
    options.exit.max_trials = static_cast<int>(tuning.exit_policy.max_trials);
    options.exit.performance_only = tuning.exit_policy.performance_only;
    options.strategy = tuning.strategy.name;
    options.strategy_settings = tuning.strategy.options;
    if (options.strategy == "tpe") {
        options.strategy_settings.set("accuracy_weight", tuning.strategy.accuracy_weight);
        options.strategy_settings.set("latency_weight", tuning.strategy.latency_weight);
    }
    options.seed = static_cast<uint64_t>(tuning.random_seed);
    options.workspace = tuning.workspace;
    if (!tuning.resume.empty()) {
        const std::filesystem::path path = tuning.resume;  // the workspace, or the journal in it
        options.workspace = path == journal_path(path.parent_path()) ? path.parent_path() : path;
        options.resume = true;
    }
    options.samples = config.quantization.calibration.sampling_sizes;
    options.quantize.recipes = config.quantization.recipes;
    options.quantize.overrides = first_choices(config);
    for (const OperatorRule& rule : config.quantization.rules) {
        SpaceRule allowed{
            rule.of, rule.pattern, rule.precisions, rule.schemes, rule.algorithms, rule.granularities, {}};
        if (rule.bits) allowed.bits = {*rule.bits};
        options.rules.push_back(std::move(allowed));
    }
    if (config.mixed_precision) {
        // Precisions without integers: what the old tools call mixed precision.
        options.rules.push_back({.precisions = config.mixed_precision->precisions});
        for (const OperatorRule& rule : config.mixed_precision->rules)
            options.rules.push_back({.of = rule.of, .pattern = rule.pattern, .precisions = rule.precisions});
        if (!config.mixed_precision->precisions.empty())
            options.quantize.overrides.push_back(
                {Override::Of::model, "", {.precision = config.mixed_precision->precisions.front()}});
    }
    return options;
}

std::shared_ptr<Loader> calibration_loader(const Config& config, const std::vector<Port>& inputs) {
    // Without samples of its own, calibration takes those of the evaluation.
    const auto& own = config.quantization.calibration.dataloader;
    const auto& loader = own ? own : config.accuracy.dataloader;
    if (!loader)
        throw Error("the configuration names no calibration samples",
                    "quantization.calibration.dataloader says where they are; --data does so without YAML");
    return make_loader(*loader, {}, config.model.framework, inputs,
                       {.limit = std::ranges::max(config.quantization.calibration.sampling_sizes)});
}

std::shared_ptr<Loader> evaluation_loader(const Config& config, const std::vector<Port>& inputs) {
    if (!config.accuracy.dataloader)
        throw Error("the configuration names no samples to evaluate with",
                    "evaluation.accuracy.dataloader says where they are; --data does so without YAML");
    // In random order, so that a hopeless trial can be told from its first samples.
    return make_loader(*config.accuracy.dataloader, config.accuracy.postprocess, config.model.framework,
                       inputs, {.shuffle = true, .seed = static_cast<uint64_t>(config.tuning.random_seed)});
}

std::vector<Component> asked_metrics(const Config& config) {
    std::vector<Component> asked;
    for (const MetricConfig& metric : config.accuracy.metrics) asked.push_back(metric.component);
    return asked;
}

std::vector<std::unique_ptr<Metric>> make_metrics(const Config& config) {
    std::vector<std::unique_ptr<Metric>> metrics;
    for (const MetricConfig& metric : config.accuracy.metrics) {
        std::unique_ptr<Metric> made = make_metric(metric.component);
        const std::optional<bool> higher = metric.higher_is_better
                                               ? metric.higher_is_better
                                               : config.tuning.accuracy_criterion.higher_is_better;
        if (higher && *higher != made->higher_is_better())
            made = std::make_unique<Directed>(std::move(made), *higher);
        metrics.push_back(std::move(made));
    }
    if (metrics.empty())
        throw Error("the configuration names no metric",
                    "evaluation.accuracy.metric does; --metric does so without YAML");
    return metrics;
}

std::unique_ptr<Evaluation> make_evaluation(const Config& config, const std::vector<Port>& inputs,
                                            EvaluationOptions options) {
    options.metrics = asked_metrics(config);
    return evaluate_with(batches_of(evaluation_loader(config, inputs), config.accuracy.iteration),
                         make_metrics(config), std::move(options));
}

}  // namespace kilter
