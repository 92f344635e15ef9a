#include "tuning/model_backend.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "base/fail.h"
#include "kilter/calibration/calibrate.h"
#include "kilter/engine/bench.h"
#include "kilter/passes/passes.h"
#include "quantization/recipes.h"
#include "tuning/hash.h"
#include "tuning/output_error.h"

namespace kilter {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

size_t constant_bytes(const Graph& graph) {
    size_t bytes = 0;
    for (const Value* value : graph.constants()) bytes += graph.constant(value)->bytes();
    return bytes;
}

// The first sample of a batch, where the model takes batches of any size.
std::vector<Tensor> first_sample(const std::vector<Tensor>& batch, const std::vector<Port>& ports) {
    std::vector<Tensor> sample;
    for (size_t i = 0; i < batch.size(); ++i) {
        const Tensor& tensor = batch[i];
        const bool open =
            ports[i].type.shape && !ports[i].type.shape->empty() && !ports[i].type.shape->front().known();
        if (!open || tensor.rank() == 0 || tensor.dim(0) <= 1) {
            sample.push_back(tensor);
            continue;
        }
        Shape shape = tensor.shape();
        shape[0] = 1;
        sample.push_back(Tensor::view(tensor.dtype(), shape, tensor.raw()).clone());
    }
    return sample;
}

double milliseconds_of(const Program& program, const std::vector<Tensor>& inputs) {
    const Clock::time_point begin = Clock::now();
    program.run(inputs);
    return seconds_since(begin) * 1e3;
}

double median(std::vector<double>& times) {
    std::ranges::nth_element(times, times.begin() + static_cast<long>(times.size() / 2));
    return times[times.size() / 2];
}

struct Latency {
    double program = 0, reference = 0;  // milliseconds
};

// Medians of some runs: enough of them to see through hiccups, not so many that trials become slow. With a reference both run in
// turns: whatever else the machine does meets both alike.
Latency latency(const Program& program, const Program* reference, const std::vector<Tensor>& inputs) {
    constexpr size_t kMost = 50, kLeast = 5;
    constexpr double kSeconds = 0.2;
    program.run(inputs);
    if (reference != nullptr) reference->run(inputs);
    std::vector<double> times, reference_times;
    const Clock::time_point start = Clock::now();
    while (times.size() < kLeast || (times.size() < kMost && seconds_since(start) < kSeconds)) {
        times.push_back(milliseconds_of(program, inputs));
        if (reference != nullptr) reference_times.push_back(milliseconds_of(*reference, inputs));
    }
    return {median(times), reference != nullptr ? median(reference_times) : 0};
}

bool has(const Space& space, std::initializer_list<std::string_view> types) {
    return std::ranges::any_of(space.operators, [&](const auto& entry) {
        return std::ranges::find(types, entry.op) != types.end();
    });
}

// The variants a user asked for, one for each number of samples; then recipes for strategies that look for more.
void add_variants(Space& space, const TuneOptions& options) {
    space.variants.clear();
    require(!options.samples.empty(), "no number of calibration samples is given");
    for (const int64_t samples : options.samples) {
        require(samples > 0, "calibrating with {} samples; expected at least one", samples);
        space.variants.push_back({options.samples.size() > 1 ? fmt::format("{} samples", samples) : "",
                                  samples, options.quantize.recipes});
    }
    space.asked_variants = static_cast<int>(space.variants.size());
    const auto add = [&](const char* name, bool Recipes::*recipe) {
        if (options.quantize.recipes.*recipe) return;
        Variant variant{name, options.samples.front(), options.quantize.recipes};
        variant.recipes.*recipe = true;
        space.variants.push_back(std::move(variant));
    };
    if (has(space, {"Conv"})) add("equalization", &Recipes::equalization);
    if (has(space, {"Attention"})) add("smooth-quant", &Recipes::smooth_quant);
}

}  // namespace

PreparedModel prepare_variant(const Model& model, const QuantizeOptions& options, const Variant& variant,
                              const std::filesystem::path& workspace, const Calibrate& calibrate) {
    PreparedModel result{clone(model), {}, {}};
    QuantizeOptions own = options;
    own.recipes = variant.recipes;
    result.notes = prepare(result.model, own);
    const auto stats = [&](bool before_smoothing) {
        if (workspace.empty()) return calibrate(result.model);
        const std::filesystem::path path = stats_path(workspace, variant, before_smoothing);
        if (std::filesystem::exists(path)) return Stats::load(path);
        Stats fresh = calibrate(result.model);
        fresh.save(path);
        return fresh;
    };
    if (!variant.recipes.smooth_quant) {
        result.stats = stats(false);
        return result;
    }
    result.stats = stats(true);
    const int smoothed = smooth_quant(result.model.graph, result.stats, variant.recipes.smooth_alpha);
    result.notes.push_back(fmt::format("smooth-quant: {} groups of products smoothed", smoothed));
    if (smoothed > 0) result.stats = stats(false);
    return result;
}

Plan adapted_plan(const Graph& prepared, const Plan& chosen) {
    Plan plan = default_plan(prepared, chosen.mode);
    for (OperatorPlan& entry : plan.operators)
        if (const OperatorPlan* choice = chosen.find(entry.name)) {
            entry.precision = choice->precision;
            entry.activation = choice->activation;
            entry.weights = choice->weights;
        }
    return plan;
}

ModelBackend::ModelBackend(const Model& model, std::function<BatchSource()> calibration,
                           Evaluation* evaluation, const TuneOptions& options)
    : model_(model), calibration_(std::move(calibration)), evaluation_(evaluation), options_(options) {
    Model prepared = clone(model);
    prepare(prepared, options.quantize);
    std::vector<SpaceRule> rules = options.rules;
    if (options.quantize.target == Target::mxnet) {
        SpaceRule rule;
        rule.algorithms = {
            RangeAlgorithm::minmax};  // what is written for it does not differ in anything else
        rules.insert(rules.begin(), std::move(rule));
    }
    space_ = make_space(make_plan(prepared.graph, options.quantize), rules);
    require(!space_.operators.empty(), "the model has no operator that can be quantized");
    add_variants(space_, options);
    prepared_.resize(space_.variants.size());
}

ModelBackend::~ModelBackend() = default;

void ModelBackend::tell(const std::string& what, int64_t done, int64_t of) const {
    if (options_.progress.working) options_.progress.working(what, done, of);
}

EngineOptions ModelBackend::engine(int threads) const {
    EngineOptions engine;
    engine.threads = threads;
    return engine;
}

void ModelBackend::read_calibration() {
    if (samples_read_ > 0) return;
    const int64_t wanted = std::ranges::max(options_.samples);
    const BatchSource next = calibration_();
    Hash hash;
    int64_t scored = 0;
    while (samples_read_ < wanted) {
        std::optional<Batch> batch = next();
        if (!batch) break;
        tell("reading calibration samples", samples_read_, wanted);
        require(!batch->inputs.empty() && batch->inputs.front().rank() > 0,
                "a batch of calibration samples is empty");
        samples_read_ += batch->inputs.front().dim(0);
        for (const Tensor& input : batch->inputs) {
            for (const int64_t size : input.shape()) hash.add(static_cast<uint64_t>(size));
            hash.add(std::span(static_cast<const std::byte*>(input.raw()), input.bytes()));
        }
        if (scored < options_.scoring_samples) {
            scoring_.push_back(batch->inputs);
            scored += batch->inputs.front().dim(0);
        }
        batches_.push_back(std::move(batch->inputs));
    }
    require(samples_read_ > 0, "there are no samples to calibrate with");
    fingerprint_ = hash.value();
}

uint64_t ModelBackend::calibration_fingerprint() {
    read_calibration();
    return fingerprint_;
}

Stats ModelBackend::calibrate_on(const Model& model, int64_t samples) {
    read_calibration();
    const int instances = available_cores();
    // The names of the prepared graph are what the statistics are about: it runs as it stands.
    const Program program(clone(model), {.threads = 1, .optimize = false});
    size_t next = 0;
    int64_t given = 0;
    const SampleSource source = [&]() -> std::optional<std::vector<Tensor>> {
        if (next == batches_.size() || given >= samples) return std::nullopt;
        given += batches_[next].front().dim(0);
        return batches_[next++];
    };
    const auto progress = [&](int64_t) {
        tell("calibrating", std::min(given, samples), std::min(samples, samples_read_));
    };
    return calibrate(program, source, {instances, progress});
}

ModelBackend::Prepared& ModelBackend::prepared(int variant) {
    std::unique_ptr<Prepared>& entry = prepared_.at(static_cast<size_t>(variant));
    if (entry) return *entry;
    const Variant& wanted = space_.variants[static_cast<size_t>(variant)];
    auto made = std::make_unique<Prepared>();
    made->parts = prepare_variant(model_, options_.quantize, wanted, options_.workspace,
                                  [&](const Model& model) { return calibrate_on(model, wanted.samples); });
    made->options.target = options_.quantize.target;
    made->options.mode = options_.quantize.mode;
    made->options.recipes = wanted.recipes;
    made->options.recipes.smooth_quant = false;  // done
    made->options.cache = make_quantization_cache();
    entry = std::move(made);
    return *entry;
}

QuantizedModel ModelBackend::quantized(const Candidate& candidate) {
    Prepared& variant = prepared(candidate.variant);
    QuantizeOptions options = variant.options;
    options.plan = adapted_plan(variant.parts.model.graph, space_.plan(candidate));
    QuantizedModel result = quantize(clone(variant.parts.model), variant.parts.stats, options);
    result.report.notes.insert(result.report.notes.begin(), variant.parts.notes.begin(),
                               variant.parts.notes.end());
    return result;
}

void ModelBackend::know_baseline(const Outcome& baseline) {
    const bool resumed = baseline_.accuracy.empty();
    baseline_ = baseline;
    if (resumed && evaluation_->needs_reference())
        evaluation_->set_reference(Program(clone(model_), engine(evaluation_->threads())));
}

Cost ModelBackend::cost_of(const Model& model, double bytes) {
    read_calibration();
    Cost cost;
    cost.bytes = bytes;
    const Program program(clone(model), engine(options_.threads));
    if (one_.empty()) one_ = first_sample(batches_.front(), program.inputs());
    // Machines have good and bad minutes: trials count by how they compare with FP32 at the same time.
    const bool known = baseline_.cost.milliseconds > 0;
    if (known && !reference_program_)
        reference_program_ = std::make_unique<Program>(clone(model_), engine(options_.threads));
    const Latency found = latency(program, known ? reference_program_.get() : nullptr, one_);
    cost.milliseconds = known ? baseline_.cost.milliseconds * found.program / found.reference : found.program;
    cost.memory = static_cast<double>(program.arena_bytes(one_));
    return cost;
}

Outcome ModelBackend::baseline() {
    const Clock::time_point start = Clock::now();
    tell("evaluating FP32");
    Outcome outcome;
    {
        const Program program(clone(model_), engine(evaluation_->threads()));
        if (evaluation_->needs_reference()) evaluation_->set_reference(program);
        EvaluationRun run = evaluation_->run(program, nullptr);
        outcome.accuracy = std::move(run.accuracy);
        outcome.samples = run.samples;
        outcome.per_sample = std::move(run.per_sample);
    }
    outcome.cost = cost_of(model_, static_cast<double>(constant_bytes(model_.graph)));
    outcome.seconds = seconds_since(start);
    baseline_ = outcome;
    return outcome;
}

Outcome ModelBackend::evaluate(const Candidate& candidate, bool complete) {
    const Clock::time_point start = Clock::now();
    const QuantizedModel model = quantized(candidate);
    const Program program(clone(model.model), engine(evaluation_->threads()));
    Rejection rejection;
    const bool single = options_.criterion.higher_is_better.size() == 1;
    if (!complete && single && !baseline_.per_sample.empty()) {
        const double limit = options_.criterion.limit(baseline_.accuracy);
        rejection.baseline = &baseline_.per_sample;
        rejection.higher_is_better = options_.criterion.higher_is_better.front();
        rejection.allowed_loss =
            rejection.higher_is_better ? baseline_.accuracy[0] - limit : limit - baseline_.accuracy[0];
        std::tie(rejection.low, rejection.high) = evaluation_->bounds();
    }
    EvaluationRun run;
    try {
        run =
            evaluation_->run_candidate(model, program, rejection.baseline != nullptr ? &rejection : nullptr);
    } catch (const NotANumber&) {  // FP32 gave numbers: this is one more way for a candidate to be bad
        run.accuracy.assign(baseline_.accuracy.size(), std::numeric_limits<double>::quiet_NaN());
    }
    Outcome outcome;
    outcome.accuracy = std::move(run.accuracy);
    outcome.samples = run.samples;
    outcome.rejected_early = run.rejected;
    // A model that is out of the question is not worth measuring.
    outcome.cost.bytes = static_cast<double>(model.report.bytes_after);
    if (!run.rejected) outcome.cost = cost_of(model.model, outcome.cost.bytes);
    outcome.seconds = seconds_since(start);
    return outcome;
}

double ModelBackend::output_error(const Candidate& candidate) {
    tell("comparing outputs with FP32");
    const auto& reference = reference_outputs();
    const Program program(std::move(quantized(candidate).model), engine(0));
    double error = 0;
    for (size_t i = 0; i < scoring_.size(); ++i)
        error += kilter::output_error(reference[i], program.run(scoring_[i])) /
                 static_cast<double>(scoring_.size());
    return error;
}

const std::vector<std::vector<Tensor>>& ModelBackend::reference_outputs() {
    read_calibration();
    if (reference_.empty()) {
        const Program program(clone(model_), engine(0));
        for (const std::vector<Tensor>& inputs : scoring_) reference_.push_back(program.run(inputs));
    }
    return reference_;
}

void ModelBackend::keep(const Trial& best) {
    if (options_.workspace.empty()) return;
    save(quantized(best.candidate), best_path(options_.workspace));
}

}  // namespace kilter
