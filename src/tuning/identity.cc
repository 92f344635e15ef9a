#include "tuning/identity.h"

#include <fmt/format.h>

#include "base/fail.h"
#include "tuning/hash.h"

namespace kilter {
namespace {

// Settings as JSON.
Record to_record(const Settings& settings) {
    if (settings.is_null()) return nullptr;
    if (settings.is_bool()) return settings.as_bool();
    if (settings.is_number()) return settings.as_number();
    if (settings.is_text()) return settings.as_text();
    if (settings.is_list()) {
        Record list = Record::array();
        for (const Settings& entry : settings.as_list()) list.push_back(to_record(entry));
        return list;
    }
    Record map = Record::object();
    for (const auto& [name, value] : settings.as_map()) map[name] = to_record(value);
    return map;
}

Record to_record(const Choice& choice) {
    Record record = Record::object();
    if (choice.precision) record["precision"] = name(*choice.precision);
    if (choice.scheme) record["scheme"] = name(*choice.scheme);
    if (choice.algorithm) record["algorithm"] = name(*choice.algorithm);
    if (choice.percentile) record["percentile"] = *choice.percentile;
    if (choice.granularity) record["granularity"] = name(*choice.granularity);
    if (choice.bits) record["bits"] = *choice.bits;
    return record;
}

template <class List>
Record names(const List& list) {
    Record record = Record::array();
    for (const auto& entry : list) record.push_back(name(entry));
    return record;
}

Record to_record(const SpaceRule& rule) {
    return {{"of", static_cast<int>(rule.of)},
            {"pattern", rule.pattern},
            {"precisions", names(rule.precisions)},
            {"schemes", names(rule.schemes)},
            {"algorithms", names(rule.algorithms)},
            {"granularities", names(rule.granularities)},
            {"bits", rule.bits}};
}

}  // namespace

uint64_t fingerprint(const Model& model) {
    Hash hash;
    hash.add(std::string_view(print(model.graph)));
    for (const Value* value : model.graph.constants()) {
        const Tensor& tensor = *model.graph.constant(value);
        hash.add(std::string_view(value->name()));
        if (tensor.dtype() != DType::string && tensor.raw() != nullptr)
            hash.add(std::span(static_cast<const std::byte*>(tensor.raw()), tensor.bytes()));
    }
    return hash.value();
}

Record settings_record(const TuneOptions& options, const std::vector<Component>& metrics) {
    Record overrides = Record::array(), rules = Record::array();
    for (const Override& rule : options.quantize.overrides)
        overrides.push_back({static_cast<int>(rule.of), rule.pattern, to_record(rule.choice)});
    for (const SpaceRule& rule : options.rules) rules.push_back(to_record(rule));
    Record asked = Record::array();
    for (const Component& metric : metrics) asked.push_back({metric.name, to_record(metric.settings)});
    return {{"metrics", asked},
            {"criterion", options.criterion.text()},
            {"weights", options.criterion.weights},
            {"objective", options.objective.text()},
            {"strategy", options.strategy},
            {"strategy_settings", to_record(options.strategy_settings)},
            {"seed", options.seed},
            {"samples", options.samples},
            {"scoring_samples", options.scoring_samples},
            {"early_rejection", options.early_rejection},
            {"mode", name(options.quantize.mode)},
            {"target", name(options.quantize.target)},
            {"recipes", to_record(options.quantize.recipes)},
            {"exclude", options.quantize.exclude},
            {"only", options.quantize.only},
            {"overrides", overrides},
            {"rules", rules}};
}

void check_same_study(const Record& recorded, const Record& now, const std::filesystem::path& workspace) {
    std::string changed;
    const auto add = [&](const std::string& what) { changed += (changed.empty() ? "" : ", ") + what; };
    if (recorded.at("model") != now.at("model")) add("the model");
    if (recorded.at("calibration") != now.at("calibration")) add("the calibration data");
    if (recorded.at("evaluation") != now.at("evaluation")) add("the evaluation data");
    for (const auto& [key, value] : now.at("settings").items())
        if (!recorded.at("settings").contains(key) || recorded["settings"][key] != value)
            add(fmt::format("'{}'", key));
    if (changed.empty()) return;
    throw Error(
        fmt::format("{}: this study was about something else: {} changed", workspace.string(), changed),
        "undo the change to go on with it, or start a new study in another --workspace");
}

}  // namespace kilter
