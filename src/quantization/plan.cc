#include "kilter/quantization/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "quantization/eligibility.h"
#include "quantization/names.h"
#include "quantization/pattern.h"

namespace kilter {
namespace {

constexpr Word<Mode> kModes[] = {{Mode::smart, "smart"}, {Mode::full, "full"}};

template <class List, class Entry>
bool contains(const List& list, const Entry& entry) {
    return std::ranges::find(list, entry) != list.end();
}

// Sets what the operator can do. With `strict`, asking for anything else is an error; otherwise it is left out.
void set_choice(OperatorPlan& plan, const Choice& choice, bool strict) {
    const Capability* can = find_capability(plan.op);
    const auto set = [&](auto& field, const auto& wanted, const auto& possible, std::string_view what) {
        if (!wanted) return;
        if (contains(possible, *wanted))
            field = *wanted;
        else if (strict)
            fail("operator '{}' ({}) cannot have {} {}", plan.name, plan.op, what, name(*wanted));
    };
    if (can == nullptr)
        fail("operator '{}': nothing can be planned for operators of type {}", plan.name, plan.op);
    set(plan.precision, choice.precision, can->precisions, "precision");
    set(plan.activation.scheme, choice.scheme, can->activation_schemes, "scheme");
    set(plan.activation.algorithm, choice.algorithm, can->algorithms, "range algorithm");
    if (choice.percentile) plan.activation.percentile = *choice.percentile;
    if (can->weight_dtypes.empty()) {
        if (strict && (choice.granularity || choice.bits))
            fail("operator '{}' ({}) has no weights", plan.name, plan.op);
        return;
    }
    set(plan.weights.granularity, choice.granularity, can->granularities, "weights");
    if (choice.bits) plan.weights.bits = *choice.bits;
}

void check_numbers(const Choice& choice) {
    require(!choice.bits || (*choice.bits >= 2 && *choice.bits <= 8), "weights of {} bits; expected 2 to 8",
            choice.bits.value_or(0));
    require(!choice.percentile || (*choice.percentile > 50 && *choice.percentile <= 100),
            "percentile {}; expected more than 50 and at most 100", choice.percentile.value_or(0));
}

std::string describe_choice(const OperatorPlan& plan) {
    if (plan.precision != Precision::int8) return std::string(name(plan.precision));
    std::string text = fmt::format("int8  {} {} {}", name(plan.activation.dtype),
                                   name(plan.activation.scheme), name(plan.activation.algorithm));
    if (plan.activation.algorithm == RangeAlgorithm::percentile)
        text += fmt::format(" {}", plan.activation.percentile);
    const Capability* can = find_capability(plan.op);
    if (can == nullptr || can->weight_dtypes.empty()) return text;
    text += fmt::format(", weights {} {}", name(plan.weights.dtype), name(plan.weights.granularity));
    if (plan.weights.bits != 8) text += fmt::format(" {} bits", plan.weights.bits);
    return text;
}

uint64_t fnv1a(std::string_view text) {
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return hash;
}

}  // namespace

std::string_view name(Mode mode) { return word_of(kModes, mode); }
Mode mode(std::string_view name) { return parse_word(kModes, "mode", name); }

const OperatorPlan* Plan::find(std::string_view name) const {
    const auto found = std::ranges::find(operators, name, &OperatorPlan::name);
    return found == operators.end() ? nullptr : &*found;
}

OperatorPlan* Plan::find(std::string_view name) {
    return const_cast<OperatorPlan*>(std::as_const(*this).find(name));  // NOLINT: this object is not const
}

size_t Plan::count(Precision precision) const {
    return static_cast<size_t>(std::ranges::count(operators, precision, &OperatorPlan::precision));
}

std::vector<OperatorPlan*> Plan::matching(std::string_view pattern) {
    constexpr std::string_view kType = "type:";
    std::vector<OperatorPlan*> found;
    if (pattern.starts_with(kType)) {
        const Pattern type(pattern.substr(kType.size()));
        for (OperatorPlan& plan : operators)
            if (type.matches(plan.op)) found.push_back(&plan);
    } else {
        const Pattern name(pattern);
        for (OperatorPlan& plan : operators)
            if (name.matches(plan.name) ||
                std::ranges::any_of(plan.origins, [&](const auto& origin) { return name.matches(origin); }))
                found.push_back(&plan);
    }
    if (found.empty())
        throw Error(
            fmt::format("'{}' matches no operator that can be quantized", pattern),
            "names are those of the model; * and ? match parts, re: starts a regular expression, type: an "
            "operator type");
    return found;
}

void Plan::apply(const Override& rule) {
    check_numbers(rule.choice);
    if (rule.of == Override::Of::model) {
        for (OperatorPlan& plan : operators) set_choice(plan, rule.choice, false);
        return;
    }
    const bool type = rule.of == Override::Of::type;
    for (OperatorPlan* plan : matching(type ? "type:" + rule.pattern : rule.pattern))
        set_choice(*plan, rule.choice, !type);
}

std::string Plan::text() const {
    size_t width = 0;
    for (const OperatorPlan& plan : operators) width = std::max(width, plan.name.size());
    std::string text;
    for (const OperatorPlan& plan : operators)
        text += fmt::format("{:{}}  {:17}  {}\n", plan.name, width, plan.op, describe_choice(plan));
    return text;
}

uint64_t Plan::hash() const { return fnv1a(json()); }

std::string diff(const Plan& before, const Plan& after) {
    std::string text;
    for (const OperatorPlan& plan : after.operators) {
        const OperatorPlan* old = before.find(plan.name);
        if (old == nullptr)
            text += fmt::format("+ {} ({}): {}\n", plan.name, plan.op, describe_choice(plan));
        else if (!(*old == plan))
            text += fmt::format("  {} ({}): {} -> {}\n", plan.name, plan.op, describe_choice(*old),
                                describe_choice(plan));
    }
    for (const OperatorPlan& plan : before.operators)
        if (after.find(plan.name) == nullptr) text += fmt::format("- {} ({})\n", plan.name, plan.op);
    return text;
}

Plan default_plan(const Graph& graph, Mode mode) {
    std::unordered_set<const Node*> on_integers;
    for (const auto& node : graph.nodes())
        if (why_not(graph, *node).empty()) on_integers.insert(node.get());
    const std::unordered_set<const Node*> lonely =
        mode == Mode::smart ? without_products_around(graph, on_integers) : std::unordered_set<const Node*>();
    const auto names = plan_names(graph);
    Plan plan;
    plan.mode = mode;
    for (const auto& node : graph.nodes()) {
        if (!on_integers.contains(node.get())) continue;
        OperatorPlan entry{names.at(node.get()), std::string(public_type(*node)), node->origins};
        if (lonely.contains(node.get())) entry.precision = Precision::f32;
        // Images have rare extremes that are better cut (docs/arithmetic.md, "Defaults"); in transformers they carry meaning.
        if (entry.op == "Conv" || entry.op == "ConvTranspose")
            entry.activation.algorithm = RangeAlgorithm::percentile;
        plan.operators.push_back(std::move(entry));
    }
    return plan;
}

}  // namespace kilter
