#include "tuning/records.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/fail.h"

namespace kilter {
namespace {

// JSON has no NaN and no infinity; metrics may have.
}  // namespace

Record to_record(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double number_from(const Record& record) {
    if (record.is_number()) return record.get<double>();
    const std::string text = record.get<std::string>();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    return text == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

std::string hex(uint64_t value) { return fmt::format("{:016x}", value); }

uint64_t from_hex(const std::string& text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    require(error == std::errc() && end == text.data() + text.size(), "'{}' is no key", text);
    return value;
}

std::string line(const Record& record) {
    return record.dump(-1, ' ', false, Record::error_handler_t::replace);
}

Record parse_record(const std::string& text) {
    Record record = Record::parse(text, nullptr, false);
    require(!record.is_discarded() && record.is_object() && record.contains("type"),
            "'{}' is no record of a study", text.substr(0, 40));
    return record;
}

Record to_record(const std::vector<double>& values) {
    Record list = Record::array();
    for (const double value : values) list.push_back(to_record(value));
    return list;
}

std::vector<double> numbers_from(const Record& record) {
    std::vector<double> values;
    for (const Record& value : record) values.push_back(number_from(value));
    return values;
}

Record to_record(const Outcome& outcome) {
    Record record{{"accuracy", to_record(outcome.accuracy)},
                  {"samples", outcome.samples},
                  {"rejected_early", outcome.rejected_early},
                  {"milliseconds", outcome.cost.milliseconds},
                  {"bytes", outcome.cost.bytes},
                  {"memory", outcome.cost.memory},
                  {"seconds", outcome.seconds}};
    if (!outcome.per_sample.empty()) record["per_sample"] = to_record(outcome.per_sample);
    return record;
}

Outcome outcome_from(const Record& record) {
    Outcome outcome;
    outcome.accuracy = numbers_from(record.at("accuracy"));
    outcome.samples = record.at("samples").get<int64_t>();
    outcome.rejected_early = record.at("rejected_early").get<bool>();
    outcome.cost = {record.at("milliseconds").get<double>(), record.at("bytes").get<double>(),
                    record.at("memory").get<double>()};
    outcome.seconds = record.at("seconds").get<double>();
    if (record.contains("per_sample")) outcome.per_sample = numbers_from(record["per_sample"]);
    return outcome;
}

Record to_record(const Recipes& recipes) {
    return {{"bias_correction", recipes.bias_correction},
            {"equalization", recipes.equalization},
            {"smooth_quant", recipes.smooth_quant},
            {"smooth_alpha", recipes.smooth_alpha},
            {"overflow_safe", recipes.overflow_safe},
            {"float_first", recipes.float_first},
            {"float_last", recipes.float_last}};
}

Recipes recipes_from(const Record& record) {
    Recipes recipes;
    recipes.bias_correction = record.at("bias_correction").get<bool>();
    recipes.equalization = record.at("equalization").get<bool>();
    recipes.smooth_quant = record.at("smooth_quant").get<bool>();
    recipes.smooth_alpha = record.at("smooth_alpha").get<double>();
    recipes.overflow_safe = record.at("overflow_safe").get<bool>();
    recipes.float_first = record.at("float_first").get<bool>();
    recipes.float_last = record.at("float_last").get<bool>();
    return recipes;
}

Record to_record(const Trial& trial, const Space& space) {
    const Variant& variant = space.variants.at(static_cast<size_t>(trial.candidate.variant));
    Record record{{"type", "trial"}, {"number", trial.number}, {"key", hex(space.key(trial.candidate))}};
    record["reason"] = trial.reason;
    record["met"] = trial.met;
    record["objective"] = to_record(trial.objective);
    record["excess"] = to_record(trial.excess);
    record["outcome"] = to_record(trial.outcome);
    record["variant"] = {
        {"name", variant.name}, {"samples", variant.samples}, {"recipes", to_record(variant.recipes)}};
    record["plan"] = Record::parse(space.plan(trial.candidate).json());
    return record;
}

}  // namespace kilter
