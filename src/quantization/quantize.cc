// From plan and statistics to the QDQ graph, and the report about it.
#include "kilter/quantization/quantize.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "kilter/passes/passes.h"
#include "quantization/bf16.h"
#include "quantization/eligibility.h"
#include "quantization/groups.h"
#include "quantization/insert.h"
#include "quantization/names.h"
#include "quantization/recipes.h"
#include "quantization/tables.h"
#include "quantization/weights.h"

namespace kilter {
namespace {

constexpr Word<Target> kTargets[] = {
    {Target::kilter, "kilter"}, {Target::onnxruntime, "onnxruntime"}, {Target::mxnet, "mxnet"}};

size_t constant_bytes(const Graph& graph) {
    size_t bytes = 0;
    for (const Value* value : graph.constants()) bytes += graph.constant(value)->bytes();
    return bytes;
}

// The plan's entries by operator. Every entry must belong to one.
Groups::Planned bind(const Graph& graph, const Plan& plan) {
    const auto names = plan_names(graph);
    std::unordered_map<std::string_view, const OperatorPlan*> entries;
    for (const OperatorPlan& entry : plan.operators)
        require(entries.emplace(entry.name, &entry).second, "the plan lists operator '{}' twice", entry.name);
    Groups::Planned bound;
    for (const auto& node : graph.nodes()) {
        const auto entry = entries.find(names.at(node.get()));
        if (entry == entries.end()) continue;
        require(entry->second->op == public_type(*node),
                "the plan takes operator '{}' for a {}, the model has a {}", entry->second->name,
                entry->second->op, public_type(*node));
        bound[node.get()] = entry->second;
        entries.erase(entry);
    }
    if (!entries.empty())
        throw Error(fmt::format("the plan has {} operators that the model does not have, e.g. '{}'",
                                entries.size(), entries.begin()->first),
                    "a plan belongs to one optimized model; make it anew for this one");
    return bound;
}

using Reasons = std::unordered_map<const Node*, std::string>;

// The operators that will run on integers; `reasons` says why others will not.
Groups::Planned choose_operators(const Graph& graph, const Plan& plan, Reasons& reasons) {
    Groups::Planned planned = bind(graph, plan);
    std::unordered_set<const Node*> on_integers;
    for (const auto& node : graph.nodes()) {
        std::string reason = why_not(graph, *node);
        const auto entry = planned.find(node.get());
        if (entry != planned.end() && entry->second->precision != Precision::int8)
            reason = fmt::format("the plan says {}", name(entry->second->precision));
        else if (entry == planned.end() && reason.empty())
            reason = "the plan does not mention it";
        if (reason.empty() && is_attached(*node) && !on_integers.contains(node->input(0)->producer()))
            reason = "what it follows is not on integers";
        if (reason.empty()) {
            on_integers.insert(node.get());
        } else {
            reasons[node.get()] = std::move(reason);
            planned.erase(node.get());
        }
    }
    if (plan.mode == Mode::full) return planned;
    const auto lonely = without_products_around(graph, on_integers);
    for (const auto& owner : graph.nodes()) {
        const Node* node = owner.get();
        if (!lonely.contains(node)) continue;
        reasons[node] = "mode smart: not between two products on integers";
        planned.erase(node);
    }
    return planned;
}

QuantizeReport make_report(const std::vector<Node*>& nodes, const Groups& groups,
                           const Groups::Planned& planned, const Groups::Planned& tables,
                           const Groups::Planned& bf16, const Reasons& reasons,
                           const std::unordered_map<const Node*, std::string>& names) {
    QuantizeReport report;
    for (const Node* node : nodes) {
        if (node->output() == nullptr || node->output()->type.dtype != DType::f32) continue;
        OperatorReport entry{names.at(node), std::string(public_type(*node))};
        if (planned.contains(node) || tables.contains(node)) entry.precision = Precision::int8;
        if (bf16.contains(node)) entry.precision = Precision::bf16;
        if (const auto reason = reasons.find(node); reason != reasons.end()) entry.reason = reason->second;
        if (entry.op.empty()) entry.op = node->op();
        report.operators.push_back(std::move(entry));
    }
    for (const Group& group : groups.all())
        if (group.quantized)
            for (const Value* value : group.members)
                report.values.push_back({value->name(), group.range, group.params});
    return report;
}

}  // namespace

std::shared_ptr<QuantizationCache> make_quantization_cache() { return std::make_shared<QuantizationCache>(); }

std::string_view name(Target target) { return word_of(kTargets, target); }
Target target(std::string_view name) { return parse_word(kTargets, "target", name); }

void apply_options(Plan& plan, const QuantizeOptions& options) {
    if (options.target == Target::mxnet) {
        Choice choice;
        choice.scheme = Scheme::sym;
        choice.algorithm = RangeAlgorithm::minmax;
        plan.apply({Override::Of::model, "", choice});
    }
    for (const Override& rule : options.overrides) plan.apply(rule);
    if (!options.only.empty()) {
        std::unordered_set<const OperatorPlan*> kept;
        for (const std::string& pattern : options.only)
            for (const OperatorPlan* entry : plan.matching(pattern)) kept.insert(entry);
        for (OperatorPlan& entry : plan.operators)
            if (!kept.contains(&entry)) entry.precision = Precision::f32;
    }
    for (const std::string& pattern : options.exclude)
        for (OperatorPlan* entry : plan.matching(pattern)) entry->precision = Precision::f32;
}

Plan make_plan(const Graph& graph, const QuantizeOptions& options) {
    if (options.plan) return *options.plan;
    Plan plan = default_plan(graph, options.mode);
    apply_options(plan, options);
    keep_ends_in_float(plan, graph, options.recipes);
    return plan;
}

QuantizedModel quantize(Model model, const Stats& stats, const QuantizeOptions& options) {
    if (options.recipes.smooth_quant)
        throw Error("smooth-quant changes activations, so it has to calibrate twice",
                    "call quantize() with a function that calibrates");
    Graph& graph = model.graph;
    infer_types(graph);
    QuantizedModel result;
    result.plan = make_plan(graph, options);

    Reasons reasons;
    Groups::Planned planned = choose_operators(graph, result.plan, reasons);
    Groups::Planned bf16 = bind(graph, result.plan);
    std::erase_if(bf16, [](const auto& entry) { return entry.second->precision != Precision::bf16; });
    // Tables are weights only: no range of an activation goes with them.
    Groups::Planned tables = planned;
    const auto is_table = [](const auto& entry) {
        return find_capability(public_type(*entry.first))->role == Role::table;
    };
    std::erase_if(tables, [&](const auto& entry) { return !is_table(entry); });
    std::erase_if(planned, is_table);
    const size_t wanted = planned.size();
    const Groups groups(graph, planned, stats, result.plan.mode == Mode::full, reasons, options.cache.get());
    if (wanted > 0 && planned.empty())
        throw Error("the statistics do not belong to this model: none of its values is in them",
                    "calibrate the model that prepare() returns");

    const size_t before = constant_bytes(graph);
    const auto names = plan_names(graph);
    WeightQuantizer weights(graph, stats, options.recipes, options.cache.get());
    std::vector<Node*> nodes;
    for (const auto& node : graph.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes) {
        const auto entry = planned.find(node);
        if (entry == planned.end()) continue;
        const Capability* can = find_capability(public_type(*node));
        if (can->weight_dtypes.empty()) continue;
        const Group& group = groups.of(node->input(0));
        std::string remark = weights.quantize(*node, entry->second->weights, group.params.scales[0]);
        if (!remark.empty()) reasons[node] = std::move(remark);
    }
    result.report = make_report(nodes, groups, planned, tables, bf16, reasons, names);
    insert_pairs(graph, groups);
    TableQuantizer table_quantizer(graph, options.cache.get());
    for (Node* node : nodes)
        if (const auto entry = tables.find(node); entry != tables.end())
            table_quantizer.quantize(*node, entry->second->weights);
    for (Node* node : nodes)
        if (bf16.contains(node)) convert_to_bf16(graph, *node);
    graph.remove_dead();
    graph.sort();
    infer_types(graph);

    for (const auto& [value, entry] : stats.values)
        if (entry.count > 0) result.report.seen.emplace_back(value, Range{entry.min, entry.max});
    result.report.bytes_before = before;
    result.report.bytes_after = constant_bytes(graph);
    if (options.recipes.bias_correction)
        result.report.notes.push_back(
            fmt::format("bias-correction: {} operators corrected", weights.corrected_operators()));
    if (options.recipes.overflow_safe) {
        result.report.notes.push_back(
            fmt::format("overflow-safe: weights of {} output channels shrunk", weights.shrunk_channels()));
        result.assumptions.emplace_back("isa", "any: no pair of neighbouring input channels exceeds int16");
    } else {
        result.assumptions.emplace_back(
            "isa", "u8·s8 products accumulate in int32 (AVX-VNNI, AVX512-VNNI, AMX, NEON dot)");
    }
    result.assumptions.emplace_back("target", name(options.target));
    result.model = std::move(model);
    return result;
}

QuantizedModel quantize(Model model, const Calibrate& calibrate, const QuantizeOptions& options) {
    std::vector<std::string> notes = prepare(model, options);
    Stats stats = calibrate(model);
    if (options.recipes.smooth_quant) {
        const int smoothed = smooth_quant(model.graph, stats, options.recipes.smooth_alpha);
        notes.push_back(fmt::format("smooth-quant: {} groups of products smoothed", smoothed));
        if (smoothed > 0) stats = calibrate(model);
    }
    QuantizeOptions rest = options;
    rest.recipes.smooth_quant = false;
    QuantizedModel result = quantize(std::move(model), stats, rest);
    result.report.notes.insert(result.report.notes.begin(), notes.begin(), notes.end());
    return result;
}

}  // namespace kilter
