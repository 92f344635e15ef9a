// What each operator costs in accuracy and gains in speed, measured on a quantized model.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "base/fail.h"
#include "kilter/engine/compare.h"
#include "tuning/model_backend.h"
#include "tuning/output_error.h"
#include "tuning/rerun.h"
#include "tuning/strategies/fallback.h"

namespace kilter {
namespace {

// Values of a run, by name, for each batch of samples.
using Known = std::unordered_map<std::string, std::vector<Tensor>>;

struct Base {
    std::unordered_map<uint64_t, std::string> known;  // signature → name
    Known values;
    double error = 0;
};

// Runs the quantized model once, keeping what later runs can start from.
Base run_base(const Model& model, const std::vector<std::vector<Tensor>>& batches,
              const std::vector<std::vector<Tensor>>& reference, size_t memory) {
    Base base;
    Model watched = clone(model);
    const int64_t samples = batches.front().front().dim(0) * static_cast<int64_t>(batches.size());
    const std::vector<std::string> kept = values_to_keep(watched.graph, samples, memory);
    const std::vector<uint64_t> signs = signatures(watched.graph);
    const size_t outputs = watched.graph.outputs().size();
    for (const std::string& name : kept) {
        Value* value = watched.graph.find(name);
        base.known.emplace(signs[static_cast<size_t>(value->id())], name);
        if (!watched.graph.is_output(value)) watched.graph.add_output(value);
    }
    std::vector<std::string> names;
    for (const Graph::Output& output : watched.graph.outputs()) names.push_back(output.value->name());
    const Program program(std::move(watched));
    for (size_t i = 0; i < program.inputs().size(); ++i)
        for (const std::vector<Tensor>& inputs : batches)
            base.values[program.inputs()[i].name].push_back(inputs[i]);
    for (size_t b = 0; b < batches.size(); ++b) {
        std::vector<Tensor> results = program.run(batches[b]);
        for (size_t i = 0; i < results.size(); ++i) base.values[names[i]].push_back(results[i]);
        results.resize(outputs);
        base.error += output_error(reference[b], results) / static_cast<double>(batches.size());
    }
    return base;
}

double error_of(const Model& model, const Base& base, const std::vector<std::vector<Tensor>>& reference) {
    Rerun part = rerun(model, base.known);
    if (!part.changed) return base.error;
    const Program program(std::move(part.model), {.threads = 1});
    double error = 0;
    for (size_t b = 0; b < reference.size(); ++b) {
        std::vector<Tensor> inputs;
        for (const std::string& name : part.known) inputs.push_back(base.values.at(name)[b]);
        error += output_error(reference[b], program.run(inputs)) / static_cast<double>(reference.size());
    }
    return error;
}

}  // namespace

std::vector<double> ModelBackend::scores(Scoring scoring, const Candidate& base) {
    return scoring == Scoring::restored ? restored_scores(base) : own_scores(base);
}

std::vector<double> ModelBackend::restored_scores(const Candidate& base) {
    const auto& reference = reference_outputs();
    const Base start = run_base(quantized(base).model, scoring_, reference, options_.memory);
    std::vector<size_t> operators;
    for (const size_t index : space_.quantized(base))
        if (space_.operators[index].role == Role::must || space_.operators[index].role == Role::eligible)
            operators.push_back(index);

    std::vector<double> result(space_.operators.size(), 0);
    std::atomic<size_t> next{0}, done{0};
    std::atomic<bool> stop{false};
    std::exception_ptr error;
    std::mutex mutex;
    const auto work = [&] {
        while (!stop) {
            const size_t i = next++;
            if (i >= operators.size()) return;
            try {
                Model model;
                {
                    const std::lock_guard lock(mutex);
                    model = quantized(with_float(space_, base, operators[i])).model;
                }
                result[operators[i]] = start.error - error_of(model, start, reference);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!error) error = std::current_exception();
                stop = true;
            }
            ++done;
        }
    };
    std::vector<std::thread> workers;
    for (int i = 0; i < available_cores(); ++i) workers.emplace_back(work);
    try {
        while (done < operators.size() && !stop) {
            tell("scoring operators", static_cast<int64_t>(done.load()),
                 static_cast<int64_t>(operators.size()));
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    } catch (...) {
        stop = true;
        for (std::thread& worker : workers) worker.join();
        throw;
    }
    for (std::thread& worker : workers) worker.join();
    if (error) std::rethrow_exception(error);
    return result;
}

std::vector<double> ModelBackend::own_scores(const Candidate& base) {
    tell("comparing operators with FP32");
    const Program a(clone(prepared(base.variant).parts.model), {.optimize = false});
    const Program b(std::move(quantized(base).model));
    Comparison comparison(a, b);
    for (const std::vector<Tensor>& inputs : scoring_) comparison.add(inputs);
    std::unordered_map<std::string, double> noise;
    for (const Drift& drift : comparison.operators()) noise[drift.name] = std::pow(10.0, -drift.snr_db / 10);
    std::vector<double> result;
    for (const SpaceOperator& entry : space_.operators) {
        const auto found = noise.find(entry.name);
        result.push_back(found == noise.end() ? 0 : found->second);
    }
    return result;
}

std::vector<double> ModelBackend::gains() {
    std::vector<double> result(space_.operators.size(), 0);
    const Candidate integers = space_.first();
    if (!options_.objective.reads(Objective::What::performance)) {
        // Bytes saved: three quarters of the weights.
        const Graph& graph = prepared(0).parts.model.graph;
        const double total = std::max(baseline_.cost.bytes, 1.0);
        for (const auto& node : graph.nodes())
            for (size_t i = 0; i < space_.operators.size(); ++i)
                if (space_.operators[i].name == plan_name(*node))
                    if (const Tensor* weights = graph.constant(node->input(1)))
                        result[i] = 0.75 * static_cast<double>(weights->bytes()) / total;
        return result;
    }
    tell("measuring operators");
    constexpr int kRuns = 15;
    const auto times = [&](Model model) {
        const Program program(std::move(model), engine(options_.threads));
        std::unordered_map<std::string, double> by_name;
        for (const StepReport& step : program.profile(one_, kRuns)) by_name[step.name] += step.milliseconds;
        return by_name;
    };
    if (one_.empty()) cost_of(model_, 0);
    const auto before = times(clone(prepared(0).parts.model));
    const auto after = times(std::move(quantized(integers).model));
    double total = 0;
    for (const auto& [name, milliseconds] : before) total += milliseconds;
    for (size_t i = 0; i < space_.operators.size(); ++i) {
        const auto f32 = before.find(space_.operators[i].name);
        const auto int8 = after.find(space_.operators[i].name);
        if (f32 != before.end() && int8 != after.end() && total > 0)
            result[i] = (f32->second - int8->second) / total;
    }
    return result;
}

}  // namespace kilter
