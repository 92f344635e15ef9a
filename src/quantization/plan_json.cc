// The JSON forms of plans and overrides. Keys that nobody reads are errors: a misspelt one would silently do nothing.
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "kilter/quantization/plan.h"

namespace kilter {
namespace {

using Json = nlohmann::ordered_json;

Json parse(std::string_view text, std::string_view what) {
    Json json = Json::parse(text, nullptr, false);
    require(!json.is_discarded(), "the {} is no JSON", what);
    require(json.is_object(), "the {} must be a JSON object", what);
    return json;
}

// Reads the keys of one object; what is left in the end is unknown.
class Reader {
  public:
    Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
        require(json.is_object(), "{} must be a JSON object", where_);
    }

    const Json* find(std::string_view key) {
        known_.emplace_back(key);
        const auto found = json_.find(key);
        return found == json_.end() ? nullptr : &*found;
    }
    std::string text(std::string_view key) {
        const Json* value = needed(key);
        require(value->is_string(), "{}: '{}' must be a string", where_, key);
        return value->get<std::string>();
    }
    double number(std::string_view key) {
        const Json* value = needed(key);
        require(value->is_number(), "{}: '{}' must be a number", where_, key);
        return value->get<double>();
    }
    int integer(std::string_view key) {
        const Json* value = needed(key);
        require(value->is_number_integer(), "{}: '{}' must be a whole number", where_, key);
        return value->get<int>();
    }
    void finish() const {
        for (const auto& [key, value] : json_.items()) {
            if (std::ranges::find(known_, key) != known_.end()) continue;
            std::string known;
            for (const std::string& name : known_) known += (known.empty() ? "" : ", ") + name;
            fail("{}: unknown key '{}'; known are {}", where_, key, known);
        }
    }

  private:
    const Json* needed(std::string_view key) {
        const Json* value = find(key);
        require(value != nullptr, "{}: '{}' is missing", where_, key);
        return value;
    }

    const Json& json_;
    std::string where_;
    std::vector<std::string> known_;
};

DType dtype(std::string_view text) {
    const auto found = parse_dtype(text);
    require(found.has_value(), "unknown element type '{}'", text);
    return *found;
}

Json to_json(const OperatorPlan& plan) {
    Json json;
    json["name"] = plan.name;
    json["op"] = plan.op;
    if (!plan.origins.empty()) json["origins"] = plan.origins;
    json["precision"] = name(plan.precision);
    json["activation"] = {{"dtype", name(plan.activation.dtype)},
                          {"scheme", name(plan.activation.scheme)},
                          {"algorithm", name(plan.activation.algorithm)},
                          {"percentile", plan.activation.percentile}};
    json["weights"] = {{"dtype", name(plan.weights.dtype)},
                       {"granularity", name(plan.weights.granularity)},
                       {"scheme", name(plan.weights.scheme)},
                       {"bits", plan.weights.bits}};
    return json;
}

OperatorPlan operator_from(const Json& json) {
    Reader reader(json, "an operator of the plan");
    OperatorPlan plan;
    plan.name = reader.text("name");
    plan.op = reader.text("op");
    if (const Json* origins = reader.find("origins")) {
        require(origins->is_array(), "operator '{}': 'origins' must be a list", plan.name);
        for (const Json& origin : *origins) {
            require(origin.is_string(), "operator '{}': 'origins' must hold strings", plan.name);
            plan.origins.push_back(origin.get<std::string>());
        }
    }
    plan.precision = precision(reader.text("precision"));
    if (const Json* part = reader.find("activation")) {
        Reader activation(*part, fmt::format("operator '{}', activation", plan.name));
        plan.activation.dtype = dtype(activation.text("dtype"));
        plan.activation.scheme = scheme(activation.text("scheme"));
        plan.activation.algorithm = range_algorithm(activation.text("algorithm"));
        plan.activation.percentile = activation.number("percentile");
        activation.finish();
    }
    if (const Json* part = reader.find("weights")) {
        Reader weights(*part, fmt::format("operator '{}', weights", plan.name));
        plan.weights.dtype = dtype(weights.text("dtype"));
        plan.weights.granularity = granularity(weights.text("granularity"));
        plan.weights.scheme = scheme(weights.text("scheme"));
        plan.weights.bits = weights.integer("bits");
        require(plan.weights.bits >= 2 && plan.weights.bits <= 8,
                "operator '{}': weights of {} bits; expected 2 to 8", plan.name, plan.weights.bits);
        weights.finish();
    }
    reader.finish();
    return plan;
}

Choice choice_from(const Json& json, const std::string& where) {
    Reader reader(json, where);
    Choice choice;
    if (reader.find("precision") != nullptr) choice.precision = precision(reader.text("precision"));
    if (reader.find("scheme") != nullptr) choice.scheme = scheme(reader.text("scheme"));
    if (reader.find("algorithm") != nullptr) choice.algorithm = range_algorithm(reader.text("algorithm"));
    if (reader.find("percentile") != nullptr) choice.percentile = reader.number("percentile");
    if (reader.find("weights") != nullptr) choice.granularity = granularity(reader.text("weights"));
    if (reader.find("bits") != nullptr) choice.bits = reader.integer("bits");
    reader.finish();
    return choice;
}

}  // namespace

std::string Plan::json() const {
    Json list = Json::array();
    for (const OperatorPlan& plan : operators) list.push_back(to_json(plan));
    return Json{{"mode", name(mode)}, {"operators", std::move(list)}}.dump(1);
}

Plan Plan::from_json(std::string_view text) {
    const Json json = parse(text, "plan");
    Reader reader(json, "the plan");
    Plan plan;
    plan.mode = kilter::mode(reader.text("mode"));
    const Json* list = reader.find("operators");
    require(list != nullptr && list->is_array(), "the plan: 'operators' must be a list");
    for (const Json& entry : *list) plan.operators.push_back(operator_from(entry));
    reader.finish();
    return plan;
}

std::vector<Override> parse_overrides(std::string_view text) {
    const Json json = parse(text, "file of overrides");
    Reader reader(json, "overrides");
    std::vector<Override> rules;
    if (const Json* model = reader.find("model"))
        rules.push_back({Override::Of::model, {}, choice_from(*model, "overrides, model")});
    const auto add = [&](std::string_view key, Override::Of of) {
        const Json* part = reader.find(key);
        if (part == nullptr) return;
        require(part->is_object(), "overrides: '{}' must be a JSON object", key);
        for (const auto& [pattern, choice] : part->items())
            rules.push_back({of, pattern, choice_from(choice, fmt::format("overrides, '{}'", pattern))});
    };
    add("types", Override::Of::type);
    add("operators", Override::Of::name);
    reader.finish();
    return rules;
}

}  // namespace kilter
