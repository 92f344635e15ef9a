#include "kilter/tuning/criterion.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/fail.h"
#include "quantization/names.h"

namespace kilter {
namespace {

// Accuracies are quotients of whole numbers: 0.9 · (1 - 0.1) must not miss 0.81 by a rounding.
constexpr double kRounding = 1e-9;

constexpr Word<Objective::What> kObjectives[] = {{Objective::What::performance, "performance"},
                                                 {Objective::What::modelsize, "modelsize"},
                                                 {Objective::What::footprint, "footprint"},
                                                 {Objective::What::accuracy, "accuracy"}};

double parse_number(std::string_view text, std::string_view what) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    require(error == std::errc() && end == text.data() + text.size() && std::isfinite(value),
            "expected {}, found '{}'", what, text);
    return value;
}

// How much worse `accuracy` is than `limit`; by the sign of the metric.
double shortfall(double accuracy, double limit, bool higher) {
    if (std::isnan(accuracy)) return std::numeric_limits<double>::infinity();
    return higher ? limit - accuracy : accuracy - limit;
}

double limit_of(double baseline, double loss, bool relative, bool higher) {
    const double allowed = relative ? loss * std::abs(baseline) : loss;
    return higher ? baseline - allowed : baseline + allowed;
}

double as_share(double shortfall, double baseline) {
    const double scale = std::abs(baseline) > 0 ? std::abs(baseline) : 1;
    const double share = shortfall / scale;
    // Against a baseline that is no number, nothing can be promised.
    if (!std::isfinite(baseline) || std::isnan(share)) return std::numeric_limits<double>::infinity();
    return std::abs(share) < kRounding ? 0 : share;
}

}  // namespace

double Criterion::limit(const Accuracy& baseline, size_t index) const {
    return limit_of(baseline.at(index), loss, relative, higher_is_better.at(index));
}

double Criterion::excess(const Accuracy& accuracy, const Accuracy& baseline) const {
    require(accuracy.size() == baseline.size() && accuracy.size() == higher_is_better.size(),
            "the evaluation gave {} figures, the baseline {}, the criterion has {}", accuracy.size(),
            baseline.size(), higher_is_better.size());
    require(weights.empty() || weights.size() == accuracy.size(), "{} weights for {} metrics", weights.size(),
            accuracy.size());
    if (weights.empty()) {
        double worst = -std::numeric_limits<double>::infinity();
        for (size_t i = 0; i < accuracy.size(); ++i)
            worst = std::max(worst, as_share(shortfall(accuracy[i], limit(baseline, i), higher_is_better[i]),
                                             baseline[i]));
        return worst;
    }
    // One figure for all of them; those that should be low count negatively.
    double sum = 0, base = 0, total = 0;
    for (const double weight : weights) total += std::abs(weight);
    require(total > 0, "the weights of all metrics are zero");
    for (size_t i = 0; i < accuracy.size(); ++i) {
        const double sign = (higher_is_better[i] ? 1 : -1) / total;
        sum += sign * weights[i] * accuracy[i];
        base += sign * weights[i] * baseline[i];
    }
    return as_share(shortfall(sum, limit_of(base, loss, relative, true), true), base);
}

Criterion Criterion::parse(std::string_view text) {
    constexpr std::string_view kForms = "a loss such as 1%, 0.01 or abs:0.5";
    Criterion criterion;
    if (text.starts_with("abs:")) {
        criterion.relative = false;
        criterion.loss = parse_number(text.substr(4), kForms);
        return criterion;
    }
    if (text.ends_with('%'))
        criterion.loss = parse_number(text.substr(0, text.size() - 1), kForms) / 100;
    else
        criterion.loss = parse_number(text, kForms);
    if (criterion.loss <= -1 || criterion.loss >= 1)
        throw Error(
            fmt::format("a relative loss of {} is out of range; expected between -100% and 100%", text),
            "abs:LOSS is a loss in the unit of the metric");
    return criterion;
}

std::string Criterion::text() const {
    return relative ? fmt::format("{:.4g} % relative", loss * 100) : fmt::format("{:.4g} absolute", loss);
}

std::string_view name(Objective::What what) { return word_of(kObjectives, what); }

bool Objective::reads(What what) const { return std::ranges::find(parts, what, &Part::what) != parts.end(); }

double Objective::value(const Cost& cost, double excess, const Cost& baseline) const {
    const auto share = [](double now, double before) { return before > 0 ? now / before : 1; };
    double sum = 0, weights = 0;
    for (const Part& part : parts) {
        weights += part.weight;
        switch (part.what) {
            case What::performance:
                sum += part.weight * share(cost.milliseconds, baseline.milliseconds);
                break;
            case What::modelsize:
                sum += part.weight * share(cost.bytes, baseline.bytes);
                break;
            case What::footprint:
                sum += part.weight * share(cost.memory, baseline.memory);
                break;
            case What::accuracy:
                sum += part.weight * (1 + excess);
                break;
        }
    }
    return weights > 0 ? sum / weights : sum;
}

Objective Objective::parse(std::string_view text) {
    Objective objective;
    objective.parts.clear();
    while (true) {
        const size_t comma = text.find(',');
        const std::string_view part = text.substr(0, comma);
        const size_t equals = part.find('=');
        Part entry{parse_word(kObjectives, "objective", part.substr(0, equals))};
        if (equals != std::string_view::npos)
            entry.weight = parse_number(part.substr(equals + 1), "a weight");
        require(entry.weight >= 0, "the weight of objective '{}' is negative", name(entry.what));
        objective.parts.push_back(entry);
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 1);
    }
    return objective;
}

std::string Objective::text() const {
    if (parts.size() == 1) return std::string(name(parts[0].what));
    std::string text;
    for (const Part& part : parts)
        text += fmt::format("{}{}={:g}", text.empty() ? "" : ",", name(part.what), part.weight);
    return text;
}

}  // namespace kilter
