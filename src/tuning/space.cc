#include "kilter/tuning/space.h"

#include <algorithm>
#include <bit>
#include <set>

#include <fmt/format.h>

#include "base/fail.h"
#include "quantization/names.h"
#include "quantization/pattern.h"
#include "tuning/hash.h"

namespace kilter {
namespace {

// What a search tries when nobody says otherwise, after the plan's own choice.
constexpr RangeAlgorithm kAlgorithms[] = {RangeAlgorithm::minmax, RangeAlgorithm::kl, RangeAlgorithm::mse};

bool matches(const SpaceRule& rule, const OperatorPlan& entry) {
    if (rule.of == Override::Of::model) return true;
    const Pattern pattern(rule.pattern);
    if (rule.of == Override::Of::type) return pattern.matches(entry.op);
    return pattern.matches(entry.name) ||
           std::ranges::any_of(entry.origins, [&](const auto& origin) { return pattern.matches(origin); });
}

// The rules that concern an operator, merged: what a later, more exact rule lists replaces what an earlier one did.
SpaceRule rule_for(const OperatorPlan& entry, const std::vector<SpaceRule>& rules) {
    SpaceRule merged;
    for (const Override::Of of : {Override::Of::model, Override::Of::type, Override::Of::name})
        for (const SpaceRule& rule : rules) {
            if (rule.of != of || !matches(rule, entry)) continue;
            const auto take = [](auto& into, const auto& from) {
                if (!from.empty()) into = from;
            };
            take(merged.precisions, rule.precisions);
            if (!rule.precisions.empty()) merged.of = rule.of;
            take(merged.schemes, rule.schemes);
            take(merged.algorithms, rule.algorithms);
            take(merged.granularities, rule.granularities);
            take(merged.bits, rule.bits);
        }
    return merged;
}

// What a plan keeps in floating point only a rule that names it can put back: one for all the others must not.
bool stays_excluded(const OperatorPlan& entry, const std::vector<SpaceRule>& rules) {
    return entry.precision != Precision::int8 && std::ranges::none_of(rules, [&](const SpaceRule& rule) {
               return rule.of == Override::Of::name && !rule.precisions.empty() && matches(rule, entry);
           });
}

template <class T, class List>
bool contains(const List& list, const T& value) {
    return std::ranges::find(list, value) != list.end();
}

// Those of `wanted` that are possible, or `fallback` when nothing was asked for.
template <class T>
std::vector<T> possible(const std::vector<T>& wanted, const std::vector<T>& can, std::vector<T> fallback) {
    if (wanted.empty()) return fallback;
    std::vector<T> kept;
    for (const T& value : wanted)
        if (contains(can, value)) kept.push_back(value);
    return kept.empty() ? fallback : kept;
}

std::vector<OperatorPlan> integer_options(const OperatorPlan& entry, const Capability& can,
                                          const SpaceRule& rule) {
    std::vector<RangeAlgorithm> algorithms{entry.activation.algorithm};
    if (can.role == Role::must)
        for (const RangeAlgorithm algorithm : kAlgorithms)
            if (!contains(algorithms, algorithm)) algorithms.push_back(algorithm);
    algorithms = possible(rule.algorithms, can.algorithms, algorithms);
    const auto schemes = possible(rule.schemes, can.activation_schemes, {entry.activation.scheme});
    const auto granularities = possible(rule.granularities, can.granularities, {entry.weights.granularity});
    const bool has_bits = !rule.bits.empty() && !can.weight_dtypes.empty();
    const std::vector<int> bits = has_bits ? rule.bits : std::vector<int>{entry.weights.bits};
    std::vector<OperatorPlan> options;
    for (const Granularity granularity : granularities)
        for (const int bit : bits)
            for (const Scheme scheme : schemes)
                for (const RangeAlgorithm algorithm : algorithms) {
                    OperatorPlan option = entry;
                    option.precision = Precision::int8;
                    option.activation.scheme = scheme;
                    option.activation.algorithm = algorithm;
                    option.weights.granularity = granularity;
                    option.weights.bits = bit;
                    if (!contains(options, option)) options.push_back(std::move(option));
                }
    return options;
}

SpaceOperator make_operator(const OperatorPlan& entry, const SpaceRule& rule, bool excluded) {
    const Capability* can = find_capability(entry.op);
    require(can != nullptr, "operator '{}': nothing can be planned for operators of type {}", entry.name,
            entry.op);
    SpaceOperator result{entry.name, entry.op, can->role, {}};
    const auto allowed = [&](Precision precision) {
        if (!contains(can->precisions, precision)) return false;
        if (!rule.precisions.empty()) return contains(rule.precisions, precision);
        return precision != Precision::bf16;  // only on demand: few machines have it
    };
    const auto add_float = [&](Precision precision) {
        OperatorPlan option = entry;
        option.precision = precision;
        if (allowed(precision)) result.options.push_back(std::move(option));
    };
    if (excluded) {
        result.options.push_back(entry);
        return result;
    }
    if (allowed(Precision::int8)) result.options = integer_options(entry, *can, rule);
    add_float(Precision::bf16);
    add_float(Precision::f32);
    // A rule for many operators means those that can; one for a name means that one.
    if (result.options.empty() && rule.of != Override::Of::name) {
        result.options.push_back(entry);
        result.options.back().precision = Precision::f32;
    }
    if (result.options.empty())
        throw Error(
            fmt::format("operator '{}' ({}): nothing that is allowed is possible", entry.name, entry.op),
            "kilter quantize --capabilities lists what each operator can do");
    return result;
}

// Adds the choices for each type that have exactly `distinct` different numbers among them, in order, up to `limit` in all.
void add_products(const std::vector<int>& choices, size_t distinct, size_t limit, std::vector<int>& chosen,
                  std::vector<std::vector<int>>& products) {
    const size_t used = std::set<int>(chosen.begin(), chosen.end()).size();
    const size_t open = choices.size() - chosen.size();
    if (products.size() == limit || used > distinct || used + open < distinct) return;
    if (open == 0) {
        products.push_back(chosen);
        return;
    }
    for (int choice = 0; choice < choices[chosen.size()]; ++choice) {
        chosen.push_back(choice);
        add_products(choices, distinct, limit, chosen, products);
        chosen.pop_back();
    }
}

}  // namespace

int SpaceOperator::first(Precision precision) const {
    const auto found = std::ranges::find(options, precision, &OperatorPlan::precision);
    return found == options.end() ? -1 : static_cast<int>(found - options.begin());
}

int SpaceOperator::first_float() const {
    const int f32 = first(Precision::f32);
    return f32 >= 0 ? f32 : first(Precision::bf16);
}

Candidate Space::first() const { return {std::vector<int>(operators.size(), 0), 0}; }

bool Space::is_quantized(const Candidate& candidate, size_t index) const {
    return operators[index].options[static_cast<size_t>(candidate.options[index])].precision ==
           Precision::int8;
}

size_t Space::count(const Candidate& candidate, Precision precision) const {
    size_t count = 0;
    for (size_t i = 0; i < operators.size(); ++i)
        count +=
            operators[i].options[static_cast<size_t>(candidate.options[i])].precision == precision ? 1 : 0;
    return count;
}

std::vector<size_t> Space::quantized(const Candidate& candidate) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < operators.size(); ++i)
        if (is_quantized(candidate, i) && operators[i].first_float() >= 0) found.push_back(i);
    return found;
}

Plan Space::plan(const Candidate& candidate) const {
    require(candidate.options.size() == operators.size(), "a candidate of {} choices for {} operators",
            candidate.options.size(), operators.size());
    Plan plan;
    plan.mode = mode;
    for (size_t i = 0; i < operators.size(); ++i)
        plan.operators.push_back(operators[i].options.at(static_cast<size_t>(candidate.options[i])));
    return plan;
}

std::string Space::summary(const Candidate& candidate) const {
    std::string text;
    for (const Precision precision : {Precision::int8, Precision::bf16, Precision::f32})
        if (const size_t number = count(candidate, precision); number > 0)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name(precision), number);
    if (const std::string& variant = variants[static_cast<size_t>(candidate.variant)].name; !variant.empty())
        text += ", " + variant;
    return text;
}

uint64_t Space::key(const Candidate& candidate) const {
    Hash hash;
    hash.add(plan(candidate).hash());
    const Variant& variant = variants.at(static_cast<size_t>(candidate.variant));
    hash.add(static_cast<uint64_t>(variant.samples));
    hash.add(variant.name);
    const Recipes& recipes = variant.recipes;
    hash.add(std::bit_cast<uint64_t>(recipes.smooth_alpha));
    for (const bool recipe : {recipes.bias_correction, recipes.equalization, recipes.smooth_quant,
                              recipes.overflow_safe, recipes.float_first, recipes.float_last})
        hash.add(uint64_t{recipe});
    return hash.value();
}

std::vector<Candidate> Space::model_wise(size_t limit) const {
    // The integer options of each type, told apart by their position: operators of one type have the same ones unless a rule
    // for a name says otherwise; then the shorter list counts.
    std::vector<std::string> types;  // in the order of the graph
    std::vector<int> choices;        // of each
    for (const SpaceOperator& entry : operators) {
        const auto integers =
            static_cast<int>(std::ranges::count(entry.options, Precision::int8, &OperatorPlan::precision));
        if (integers == 0) continue;
        const auto type = static_cast<size_t>(std::ranges::find(types, entry.op) - types.begin());
        if (type == types.size()) {
            types.push_back(entry.op);
            choices.push_back(integers);
        }
        choices[type] = std::min(choices[type], integers);
    }
    std::vector<std::vector<int>> products;
    std::vector<int> chosen;
    for (size_t distinct = types.empty() ? 0 : 1; distinct <= types.size(); ++distinct)
        add_products(choices, distinct, limit, chosen, products);
    std::vector<Candidate> candidates;
    for (const std::vector<int>& product : products) {
        Candidate candidate = first();
        for (size_t i = 0; i < operators.size(); ++i) {
            const auto type = std::ranges::find(types, operators[i].op);
            if (type == types.end() || operators[i].options[0].precision != Precision::int8) continue;
            candidate.options[i] = product[static_cast<size_t>(type - types.begin())];
        }
        candidates.push_back(std::move(candidate));
    }
    return candidates;
}

Space make_space(const Plan& plan, const std::vector<SpaceRule>& rules) {
    for (const SpaceRule& rule : rules)
        if (rule.of != Override::Of::model &&
            std::ranges::none_of(plan.operators, [&](const auto& entry) { return matches(rule, entry); }))
            throw Error(fmt::format("'{}' matches no operator that can be quantized", rule.pattern),
                        "names are those of the model; kilter inspect lists them");
    for (const SpaceRule& rule : rules)
        for (const int bits : rule.bits)
            require(bits >= 2 && bits <= 8, "weights of {} bits; expected 2 to 8", bits);
    Space space;
    space.mode = plan.mode;
    space.variants.push_back({});
    for (const OperatorPlan& entry : plan.operators)
        space.operators.push_back(make_operator(entry, rule_for(entry, rules), stays_excluded(entry, rules)));
    return space;
}

}  // namespace kilter
