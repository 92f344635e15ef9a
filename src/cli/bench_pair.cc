#include "cli/bench_pair.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "kilter/quantization/quantize.h"
#include "ops/cost.h"

namespace kilter::cli {
namespace {

constexpr int kRounds = 11;

std::string node_name(const Node& node) {
    return node.name.empty() && node.output() != nullptr ? node.output()->name() : node.name;
}

bool is_conversion(const Node& node) { return node.is("QuantizeLinear") || node.is("DequantizeLinear"); }

bool on_integers(const Node& node) {
    if (node.is_kilter("QLayerNormalization")) return true;
    if (node.domain() == kKilterDomain && node.op().starts_with('Q')) return true;
    const Value* input = node.input(0);
    return input != nullptr && (input->type.dtype == DType::u8 || input->type.dtype == DType::i8);
}

struct Steps {
    double milliseconds = 0;
    std::string op, kernel;  // of the longest one
    double longest = -1;
};

std::map<std::string, Steps> by_name(const std::vector<StepReport>& reports) {
    std::map<std::string, Steps> steps;
    for (const StepReport& report : reports) {
        Steps& entry = steps[report.name];
        entry.milliseconds += report.milliseconds;
        if (report.milliseconds <= entry.longest) continue;
        entry.longest = report.milliseconds;
        entry.op = report.op;
        entry.kernel = report.kernel;
    }
    return steps;
}

// The operator that a conversion serves: the first one that is no conversion itself, downstream.
const Node* served(const Node& conversion) {
    const Node* node = &conversion;
    while (node != nullptr && is_conversion(*node))
        node = node->output()->users().empty() ? nullptr : node->output()->users().front();
    return node;
}

bool is_depthwise(const Node& node) {
    const Value* weights = node.input(1);
    return weights != nullptr && weights->type.shape && weights->type.shape->size() > 1 &&
           (*weights->type.shape)[1] == Dim(1) && node.attributes.get_int("group", 1) > 1;
}

// Nodes of the second program by the names they may have in the first: their own, or that of an operator fused into them.
std::unordered_map<std::string, const Node*> nodes_by_name(const Graph& graph) {
    std::unordered_map<std::string, const Node*> nodes;
    for (const auto& node : graph.nodes()) nodes.emplace(node_name(*node), node.get());
    for (const auto& node : graph.nodes())
        for (const std::string& origin : node->origins) nodes.emplace(origin, node.get());
    return nodes;
}

std::string explain(const OperatorPair& pair, const Node& mine, const Node& theirs, const Plan* plan) {
    // The same float32 operator may look faster by chance: what it runs as is no matter of timing.
    const bool faster = pair.milliseconds_b < 0.95 * pair.milliseconds_a;
    if (faster && (plan == nullptr || on_integers(theirs))) return {};
    if (!on_integers(theirs)) {
        if (!is_quantizable(mine)) return "runs in float32: has no INT8 form";
        const OperatorPlan* planned = plan != nullptr ? plan->find(plan_name(mine)) : nullptr;
        return planned != nullptr && planned->precision != Precision::int8
                   ? "runs in float32: excluded by the plan"
                   : "runs in float32: not quantized";
    }
    if (pair.milliseconds_b - pair.conversion < 0.95 * pair.milliseconds_a)
        return fmt::format("conversion before it takes {:.3f} ms", pair.conversion);
    if (pair.kernel_b.starts_with("ref")) return "no fast INT8 kernel for it";
    if (is_depthwise(mine)) return "depthwise: bound by memory, little to gain";
    if (!is_quantizable(mine)) return "moves data: little to gain";
    if (pair.milliseconds_a < 0.02) return "too short to gain";
    return "INT8 kernel is not faster for this shape";
}

}  // namespace

double PairMeasurement::ratio() const {
    std::vector<double> sorted = ratios;
    std::ranges::sort(sorted);
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
}

PairMeasurement measure_pair(const Program& a, const Program& b, const Model& model_b,
                             const std::vector<Tensor>& inputs_a, const std::vector<Tensor>& inputs_b,
                             const BenchOptions& options) {
    PairMeasurement done;
    BenchOptions slice = options;
    slice.seconds = options.seconds / (2 * kRounds);
    if (options.iterations > 0) slice.iterations = std::max<int64_t>(1, options.iterations / kRounds);
    slice.progress = {};
    for (int round = 0; round < kRounds; ++round) {
        if (options.progress) options.progress(static_cast<double>(round) / kRounds);
        const BenchResult first = bench(a, inputs_a, slice);
        const BenchResult second = bench(b, inputs_b, slice);
        done.ratios.push_back(first.median() / std::max(second.median(), 1e-9));
        for (const auto& [total, part] : {std::pair(&done.a, &first), std::pair(&done.b, &second)}) {
            total->milliseconds.insert(total->milliseconds.end(), part->milliseconds.begin(),
                                       part->milliseconds.end());
            total->seconds += part->seconds;
        }
    }
    std::ranges::sort(done.a.milliseconds);
    std::ranges::sort(done.b.milliseconds);

    const std::map<std::string, Steps> steps_a = by_name(a.profile(inputs_a));
    std::map<std::string, Steps> steps_b = by_name(b.profile(inputs_b));
    const std::unordered_map<std::string, const Node*> nodes_b = nodes_by_name(b.graph());
    std::unordered_map<const Node*, double> conversions;
    for (const auto& node : b.graph().nodes()) {
        if (!is_conversion(*node)) continue;
        const auto step = steps_b.find(node_name(*node));
        const Node* reader = served(*node);
        if (step == steps_b.end() || reader == nullptr) continue;
        conversions[reader] += step->second.milliseconds;
        steps_b.erase(step);
    }
    const std::optional<Plan> plan = stored_plan(model_b);
    for (const auto& node : a.graph().nodes()) {
        const auto mine = steps_a.find(node_name(*node));
        if (mine == steps_a.end()) continue;
        const auto counterpart = nodes_b.find(mine->first);
        const auto theirs =
            counterpart == nodes_b.end() ? steps_b.end() : steps_b.find(node_name(*counterpart->second));
        if (theirs == steps_b.end()) {
            done.only_a += mine->second.milliseconds;
            continue;
        }
        OperatorPair pair{mine->first, mine->second.op, theirs->second.op, mine->second.kernel,
                          theirs->second.kernel};
        pair.conversion = conversions[counterpart->second];
        conversions.erase(counterpart->second);
        pair.milliseconds_a = mine->second.milliseconds;
        pair.milliseconds_b = theirs->second.milliseconds + pair.conversion;
        pair.why = explain(pair, *node, *counterpart->second, plan ? &*plan : nullptr);
        steps_b.erase(theirs);
        done.operators.push_back(std::move(pair));
    }
    for (const auto& [name, steps] : steps_b) done.only_b += steps.milliseconds;
    for (const auto& [node, milliseconds] : conversions) done.only_b += milliseconds;
    return done;
}

}  // namespace kilter::cli
