#include "config/operator_rules.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "quantization/pattern.h"

namespace kilter {
namespace config {
namespace {

// The old tool's names of operator types, of all its frameworks, and ours.
struct TypeName {
    std::string_view old, ours;
};
constexpr TypeName kTypeNames[] = {
    {"Conv2D", "Conv"},
    {"conv", "Conv"},
    {"conv2d", "Conv"},
    {"Conv1d", "Conv"},
    {"Conv2d", "Conv"},
    {"Convolution", "Conv"},
    {"_sg_mkldnn_conv", "Conv"},
    {"DepthwiseConv2dNative", "Conv"},
    {"FusedConv", "Conv"},
    {"matmul", "MatMul"},
    {"Linear", "MatMul"},
    {"linear", "MatMul"},
    {"Gemm", "MatMul"},
    {"BatchMatMul", "MatMul"},
    {"BatchMatMulV2", "MatMul"},
    {"batch_dot", "MatMul"},
    {"FullyConnected", "MatMul"},
    {"fully_connected", "MatMul"},
    {"_sg_mkldnn_fully_connected", "MatMul"},
    {"AddV2", "Add"},
    {"AddN", "Add"},
    {"elemwise_add", "Add"},
    {"AvgPool", "AveragePool"},
    {"ConcatV2", "Concat"},
    {"concat", "Concat"},
};

template <class T>
struct Word {
    std::string_view word;
    T value;
};
constexpr Word<Precision> kDtypes[] = {{"int8", Precision::int8},
                                       {"uint8", Precision::int8},
                                       {"fp32", Precision::f32},
                                       {"bf16", Precision::bf16}};
constexpr Word<Scheme> kSchemes[] = {{"sym", Scheme::sym}, {"asym", Scheme::asym}};
constexpr Word<Granularity> kGranularities[] = {{"per_channel", Granularity::per_channel},
                                                {"per_tensor", Granularity::per_tensor},
                                                {"channel-wise", Granularity::per_channel},
                                                {"tensor-wise", Granularity::per_tensor}};
constexpr Word<RangeAlgorithm> kAlgorithms[] = {
    {"minmax", RangeAlgorithm::minmax},         {"kl", RangeAlgorithm::kl},
    {"percentile", RangeAlgorithm::percentile}, {"mse", RangeAlgorithm::mse},
    {"naive", RangeAlgorithm::minmax},          {"entropy", RangeAlgorithm::kl}};

// The values of the words that have one, each once, in the order of the list.
template <class T, size_t n>
std::vector<T> values_of(const Settings* list, const Word<T> (&words)[n]) {
    std::vector<T> values;
    if (list == nullptr) return values;
    for (const Settings& item : list->as_list()) {
        const auto found = std::ranges::find(words, std::string_view(item.as_text()), &Word<T>::word);
        if (found != std::end(words) && std::ranges::find(values, found->value) == values.end())
            values.push_back(found->value);
    }
    return values;
}

bool says(const Settings* list, std::string_view word) {
    return list != nullptr &&
           std::ranges::any_of(list->as_list(), [&](const Settings& item) { return item.as_text() == word; });
}

// A key of letters, digits, '_', '.', '-' and '/' is a name; any other a regular expression for the beginning of names.
std::string name_pattern(const std::string& key, const Settings& value) {
    const bool exact = std::ranges::all_of(key, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '.' || c == '-' || c == '/';
    });
    if (exact) return key;
    constexpr size_t kLongest = 200;  // the standard library compiles regular expressions by recursion
    require(key.size() <= kLongest, "{}: a regular expression of more than {} characters", value.where(),
            kLongest);
    std::string pattern = "re:(?:" + key + ").*";
    try {
        Pattern check(pattern);
    } catch (const Error&) {
        throw Error(
            fmt::format("{}: '{}' is no regular expression", value.where(), key),
            "a key with other characters than letters, digits and _ . - / is one: '.*' stands for any text");
    }
    return pattern;
}

// Weights and activations must agree: an operator computes in one precision.
std::vector<Precision> common(const Settings* activation, const Settings* weight, const Settings& rule,
                              std::vector<std::string>& notes) {
    if (activation == nullptr || weight == nullptr) {
        const Settings* only = activation != nullptr ? activation : weight;
        return only == nullptr ? std::vector<Precision>() : precisions(*only, notes);
    }
    std::vector<Precision> both = precisions(*activation, notes);
    const std::vector<Precision> of_weights = precisions(*weight, notes);
    std::erase_if(both, [&](Precision p) { return std::ranges::find(of_weights, p) == of_weights.end(); });
    if (both.empty())
        throw Error(
            fmt::format("{}: activation.dtype and weight.dtype have nothing in common", rule.where()),
            "an operator is quantized or computes in floating point as a whole: give both the same types");
    return both;
}

OperatorRule make_rule(Override::Of of, std::string pattern, const Settings& options,
                       std::vector<std::string>& notes) {
    const Settings* weight = options.find("weight");
    const Settings* activation = options.find("activation");
    const auto part = [](const Settings* map, std::string_view key) {
        return map == nullptr ? nullptr : map->find(key);
    };
    OperatorRule rule;
    rule.of = of;
    rule.pattern = std::move(pattern);
    rule.where = options.where();
    rule.precisions = common(part(activation, "dtype"), part(weight, "dtype"), options, notes);
    rule.schemes = values_of(part(activation, "scheme"), kSchemes);
    rule.algorithms = values_of(part(activation, "algorithm"), kAlgorithms);
    rule.granularities = values_of(part(weight, "granularity"), kGranularities);
    if (const Settings* bit = part(weight, "bit")) {
        require(bit->as_list().size() == 1, "{}: expected one number of bits", bit->where());
        // 7 bits besides the sign are all of an int8; fewer than 2 in all hold nothing.
        rule.bits = std::max(2, static_cast<int>(std::lround(bit->as_list()[0].as_number())) + 1);
    }
    const auto ignored = [&](const Settings* list, std::string_view word, std::string_view why) {
        if (says(list, word))
            notes.push_back(fmt::format("{}: {} has no effect: {}", list->where(), word, why));
    };
    ignored(part(weight, "scheme"), "asym", "weights are always symmetric");
    ignored(part(weight, "algorithm"), "kl", "weights always use their extremes");
    ignored(part(activation, "granularity"), "per_channel",
            "activations have one scale for the whole tensor");
    if (const Settings* dtype = part(activation, "compute_dtype"))
        notes.push_back(fmt::format("{}: no effect: it concerns dynamic quantization", dtype->where()));
    return rule;
}

// A rule for a type replaces what the rule for the whole model says, so what it leaves open returns to kilter's defaults.
void replace(OperatorRule& rule, const OperatorRule& model) {
    if (rule.precisions.empty() && !model.precisions.empty()) rule.precisions = {Precision::int8};
    if (rule.schemes.empty() && !model.schemes.empty()) rule.schemes = {ActivationChoice().scheme};
    if (rule.algorithms.empty() && !model.algorithms.empty())
        rule.algorithms = {ActivationChoice().algorithm};
    if (rule.granularities.empty() && !model.granularities.empty())
        rule.granularities = {WeightChoice().granularity};
    if (!rule.bits && model.bits) rule.bits = WeightChoice().bits;
}

}  // namespace

std::vector<Precision> precisions(const Settings& list, std::vector<std::string>& notes) {
    std::vector<Precision> values = values_of(&list, kDtypes);
    if (says(&list, "fp16")) {
        if (values.empty())
            throw Error(fmt::format("{}: kilter does not compute in fp16", list.where()),
                        "floating-point types it has: fp32, bf16");
        notes.push_back(fmt::format("{}: fp16 is left out: kilter does not compute in it", list.where()));
    }
    return values;
}

std::vector<OperatorRule> operator_rules(const Settings& section, std::vector<std::string>& notes) {
    std::vector<OperatorRule> rules;
    OperatorRule model;
    if (const Settings* options = section.find("model_wise"); options && !options->as_map().empty()) {
        model = make_rule(Override::Of::model, "", *options, notes);
        rules.push_back(model);
    }
    if (const Settings* types = section.find("optype_wise"))
        for (const auto& [type, options] : types->as_map()) {
            const auto known = std::ranges::find(kTypeNames, std::string_view(type), &TypeName::old);
            const std::string ours(known != std::end(kTypeNames) ? known->ours : std::string_view(type));
            rules.push_back(make_rule(Override::Of::type, ours, options, notes));
            replace(rules.back(), model);
        }
    if (const Settings* names = section.find("op_wise"))
        for (const auto& [name, options] : names->as_map())
            rules.push_back(make_rule(Override::Of::name, name_pattern(name, options), options, notes));
    return rules;
}

}  // namespace config

std::vector<Choice> OperatorRule::choices() const {
    const auto options = [](const auto& list) {
        using T = typename std::decay_t<decltype(list)>::value_type;
        std::vector<std::optional<T>> all(list.begin(), list.end());
        if (all.empty()) all.emplace_back();
        return all;
    };
    std::vector<Choice> choices;
    for (const auto precision : options(precisions)) {
        if (precision && *precision != Precision::int8) {
            choices.push_back({.precision = precision});
            continue;
        }
        for (const auto granularity : options(granularities))
            for (const auto scheme : options(schemes))
                for (const auto algorithm : options(algorithms))
                    choices.push_back({.precision = precision,
                                       .scheme = scheme,
                                       .algorithm = algorithm,
                                       .granularity = granularity,
                                       .bits = bits});
    }
    return choices;
}

std::vector<Override> first_choices(const Config& config) {
    std::vector<Override> overrides;
    for (const OperatorRule& rule : config.quantization.rules)
        overrides.push_back({rule.of, rule.pattern, rule.choices().front()});
    return overrides;
}

}  // namespace kilter
