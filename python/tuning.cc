// tune, sensitivity and recover for Python. The GIL is held only while functions of the user run; what they raise passes through
// the tuner as it is.
#include <random>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kilter/tuning/job.h"
#include "quantized.h"
#include "settings.h"
#include "study.h"

namespace kilter::python {
namespace {

using namespace nb::literals;

constexpr size_t kMemory = size_t{2} << 30;  // bytes of samples that are kept, and mixed

// `open` returns a function that returns (inputs, labels) as to_tensors and to_labels take them, or None at the end.
std::function<BatchSource()> batches_from(const nb::callable& open) {
    return [start = Callback(open)]() -> BatchSource {
        const nb::gil_scoped_acquire gil;
        return [next = Callback((*start)())]() -> std::optional<Batch> {
            const nb::gil_scoped_acquire gil;
            const nb::object item = (*next)();
            if (item.is_none()) return std::nullopt;
            const auto pair = nb::cast<nb::tuple>(item);
            return Batch{to_own_tensors(nb::cast<nb::list>(pair[0])),
                         to_own_labels(nb::cast<nb::list>(pair[1]))};
        };
    };
}

std::function<BatchSource()> batches_in(std::shared_ptr<const std::vector<Batch>> batches) {
    return [batches]() -> BatchSource {
        return [batches, next = size_t{0}]() mutable -> std::optional<Batch> {
            if (next == batches->size()) return std::nullopt;
            return (*batches)[next++];
        };
    };
}

// The batches, when there is room for them all.
std::optional<std::vector<Batch>> collect(const BatchSource& next) {
    std::vector<Batch> batches;
    size_t bytes = 0;
    while (std::optional<Batch> batch = next()) {
        for (const Tensor& input : batch->inputs) bytes += input.bytes();
        if (bytes > kMemory) return std::nullopt;
        batches.push_back(std::move(*batch));
    }
    return batches;
}

// Samples of one shape in random order, in batches as large as the first one; nothing when they cannot be taken apart.
std::optional<std::vector<Batch>> shuffled(const std::vector<Batch>& batches, uint64_t seed) {
    if (batches.empty()) return batches;
    std::vector<Sample> samples;
    for (const Batch& batch : batches) {
        for (const Tensor& input : batch.inputs)
            if (input.rank() == 0 || input.dim(0) != batch.size() || input.dtype() == DType::string)
                return std::nullopt;
        for (size_t i = 0; i < batch.inputs.size(); ++i) {
            const Tensor &first = batches.front().inputs[i], &input = batch.inputs[i];
            if (!std::ranges::equal(first.shape().begin() + 1, first.shape().end(), input.shape().begin() + 1,
                                    input.shape().end()))
                return std::nullopt;
        }
        for (int64_t row = 0; row < batch.size(); ++row) {
            Sample sample;
            for (const Tensor& input : batch.inputs) {
                const size_t bytes = input.bytes() / static_cast<size_t>(batch.size());
                const auto* data =
                    static_cast<const std::byte*>(input.raw()) + static_cast<size_t>(row) * bytes;
                const Shape shape(input.shape().begin() + 1, input.shape().end());
                sample.inputs.push_back(Tensor::view(input.dtype(), shape, data).clone());
            }
            sample.label = batch.labels[static_cast<size_t>(row)];
            samples.push_back(std::move(sample));
        }
    }
    std::mt19937_64 random(seed);
    for (size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random() % i]);
    const auto size = static_cast<size_t>(std::max<int64_t>(1, batches.front().size()));
    std::vector<Batch> mixed;
    for (size_t first = 0; first < samples.size(); first += size) {
        const size_t last = std::min(first + size, samples.size());
        mixed.push_back(stack({std::make_move_iterator(samples.begin() + static_cast<long>(first)),
                               std::make_move_iterator(samples.begin() + static_cast<long>(last))}));
    }
    return mixed;
}

//! A function of the user's, which gets the model as a session that is his until it returns.
class ByPython : public Evaluation {
  public:
    //! `elsewhere`: the function gets candidates whole, to run them with another engine.
    ByPython(nb::object function, std::vector<bool> higher, bool elsewhere)
        : function_(std::move(function)), higher_(std::move(higher)), elsewhere_(elsewhere) {}
    std::vector<bool> higher_is_better() const override { return higher_; }

    EvaluationRun run(const Program& program, const Rejection* /*rejection*/) override {
        const nb::gil_scoped_acquire gil;
        auto* session = new ProgramSession(&program);
        const nb::object lent = nb::cast(session, nb::rv_policy::take_ownership);
        EvaluationRun result;
        try {
            result.accuracy = nb::cast<std::vector<double>>((*function_)(lent));
        } catch (...) {
            session->take_back();
            throw;
        }
        session->take_back();
        return result;
    }

    EvaluationRun run_candidate(const QuantizedModel& candidate, const Program& program,
                                const Rejection* rejection) override {
        if (!elsewhere_) return run(program, rejection);
        QuantizedModel whole{clone(candidate.model), candidate.plan, candidate.report, candidate.assumptions};
        const nb::gil_scoped_acquire gil;
        const nb::object given =
            nb::cast(new QuantizedSession(std::move(whole), 0), nb::rv_policy::take_ownership);
        EvaluationRun result;
        result.accuracy = nb::cast<std::vector<double>>((*function_)(given));
        return result;
    }

  private:
    Callback function_;
    std::vector<bool> higher_;
    bool elsewhere_;
};

//! What was found, with the best model ready to run.
class TunedSession : public QuantizedSession {
  public:
    TunedSession(TuneResult result, int threads)
        : QuantizedSession(std::move(result.model), threads), result_(std::move(result)) {}
    TuneResult& result() { return result_; }

  private:
    TuneResult result_;  // without its model, which the session has
};

std::vector<Component> metrics_of(const nb::list& metrics) {
    std::vector<Component> components;
    for (const nb::handle metric : metrics) components.push_back(to_component(metric, "metric"));
    return components;
}

// What a configuration does to labels before a metric sees them, for samples that do not come from its own loader.
std::function<BatchSource()> with_postprocess(std::function<BatchSource()> open, const Config& config) {
    if (config.accuracy.postprocess.empty()) return open;
    auto transforms = std::make_shared<Transforms>();
    for (const Component& component : config.accuracy.postprocess)
        transforms->push_back(make_transform(component, config.model.framework));
    return [open = std::move(open), transforms]() -> BatchSource {
        return [next = open(), transforms]() -> std::optional<Batch> {
            std::optional<Batch> batch = next();
            for (size_t i = 0; batch && i < batch->labels.size(); ++i) {
                Sample sample;
                sample.label = std::move(batch->labels[i]);
                for (const auto& transform : *transforms) transform->apply(sample);
                batch->labels[i] = std::move(sample.label);
            }
            return batch;
        };
    };
}

//! Where the samples of a job come from: Python objects first, then the configuration.
struct Sources {
    std::function<BatchSource()> calibration, evaluation;
};

Sources open_sources(const Session& session, const std::optional<nb::callable>& calibration,
                     const std::optional<nb::callable>& data, const std::optional<Config>& config,
                     bool evaluates, TuneOptions& options) {
    Sources sources;
    const std::vector<Port>& inputs = session.program().inputs();
    if (data) {
        sources.evaluation = batches_from(*data);
        if (config) sources.evaluation = with_postprocess(std::move(sources.evaluation), *config);
        std::optional<std::vector<Batch>> mixed = collect(sources.evaluation());
        if (mixed) mixed = shuffled(*mixed, options.seed);
        // In the user's order nothing can be told from the first samples.
        if (!mixed) options.early_rejection = false;
        if (mixed)
            sources.evaluation = batches_in(std::make_shared<const std::vector<Batch>>(std::move(*mixed)));
    } else if (evaluates && config) {
        sources.evaluation = batches_of(evaluation_loader(*config, inputs), config->accuracy.iteration);
    }
    if (calibration)
        sources.calibration = batches_from(*calibration);
    else if (config && (!data || config->quantization.calibration.dataloader))
        sources.calibration = batches_of(calibration_loader(*config, inputs));
    else
        sources.calibration = sources.evaluation;
    if (!sources.calibration)
        throw Error("there are no samples to calibrate with", "give calibration, an iterable of inputs");
    return sources;
}

std::unique_ptr<Evaluation> make_evaluation(const std::function<BatchSource()>& source,
                                            const std::vector<Component>& asked,
                                            const std::optional<Config>& config, int instances,
                                            Watch& watch) {
    std::vector<std::unique_ptr<Metric>> metrics;
    for (const Component& metric : asked) metrics.push_back(make_metric(metric));
    EvaluationOptions options;
    options.instances = instances;
    options.metrics = asked;
    if (asked.empty() && config) {
        metrics = make_metrics(*config);
        options.metrics = asked_metrics(*config);
    }
    options.progress = [&watch](int64_t samples) { watch.evaluated(samples); };
    return evaluate_with(source, std::move(metrics), std::move(options));
}

TunedSession* tune_session(const Session& session, const std::optional<nb::callable>& calibration,
                           const std::optional<nb::callable>& evaluate,
                           const std::vector<bool>& higher_is_better, const std::optional<nb::callable>& data,
                           const nb::list& metrics, const nb::object& config_object, const nb::dict& words,
                           const nb::dict& quantize_words, int instances,
                           const std::optional<nb::callable>& told,
                           const std::optional<nb::callable>& working, bool elsewhere) {
    const std::optional<Config> config = config_of(config_object);
    TuneOptions options = config ? tune_options(*config) : TuneOptions();
    apply_search_words(words, options);
    apply_words(quantize_words, options.quantize);
    const std::vector<Component> asked = metrics_of(metrics);
    std::unique_ptr<Evaluation> evaluation;
    if (evaluate) evaluation = std::make_unique<ByPython>(*evaluate, higher_is_better, elsewhere);

    Watch watch(working);
    Outcome fp32;
    listen(options, watch, told, fp32);
    const nb::gil_scoped_release unlocked;
    const Sources sources = open_sources(session, calibration, data, config, !evaluate, options);
    if (!evaluation) evaluation = make_evaluation(sources.evaluation, asked, config, instances, watch);
    return new TunedSession(tune(session.model(), sources.calibration, *evaluation, options),
                            options.threads);
}

nb::list sensitivity_of(const Session& session, const nb::callable& calibration, const nb::dict& words,
                        const nb::dict& quantize_words, const std::optional<nb::callable>& working) {
    TuneOptions options;
    apply_search_words(words, options);
    apply_words(quantize_words, options.quantize);
    Watch watch(working);
    options.progress.working = std::ref(watch);
    std::vector<Sensitivity> rows;
    {
        const nb::gil_scoped_release unlocked;
        rows = sensitivity(session.model(), batches_from(calibration), options);
    }
    nb::list list;
    for (const Sensitivity& row : rows)
        list.append(nb::make_tuple(row.name, row.op, row.error, row.share, row.gain));
    return list;
}

}  // namespace

void bind_tuning(nb::module_& module) {
    nb::class_<TunedSession, QuantizedSession>(module, "TunedSession")
        .def_prop_ro("result", [](TunedSession& session) { return python::to_dict(session.result()); });
    module.def("tune", &tune_session, "session"_a, "calibration"_a.none(), "evaluate"_a.none(),
               "higher_is_better"_a, "data"_a.none(), "metrics"_a, "config"_a.none(), "options"_a,
               "quantize"_a, "instances"_a, "told"_a.none(), "working"_a.none(), "elsewhere"_a);
    module.def("sensitivity", &sensitivity_of, "session"_a, "calibration"_a, "options"_a, "quantize"_a,
               "working"_a.none());
    module.def(
        "recover",
        [](const std::string& workspace, int number, const Session* session, int threads) {
            const nb::gil_scoped_release unlocked;
            return new QuantizedSession(recover(workspace, number, session ? &session->model() : nullptr),
                                        threads);
        },
        "workspace"_a, "number"_a, "session"_a.none(), "threads"_a);
}

}  // namespace kilter::python
