// The JSON Schema (draft 2020-12) that follows from the table of keys.
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/rule.h"
#include "kilter/config/config.h"

namespace kilter {
namespace {

using Json = nlohmann::ordered_json;
using config::Key;
using config::Kind;
using config::Rule;

using Definitions = std::map<std::string, Json, std::less<>>;

Json schema_of(const Rule& rule, Definitions& definitions);

Json of_number(const Rule& rule) {
    Json number{{"type", rule.kind == Kind::integer ? "integer" : "number"}};
    const bool open_min = rule.exclusive || rule.above_min;
    if (std::isfinite(rule.min)) number[open_min ? "exclusiveMinimum" : "minimum"] = rule.min;
    if (std::isfinite(rule.max)) number[rule.exclusive ? "exclusiveMaximum" : "maximum"] = rule.max;
    const std::string pattern =
        std::string(R"(^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*)") + (rule.percent ? "%?\\s*$" : "$");
    return {{"anyOf", Json::array({number, {{"type", "string"}, {"pattern", pattern}}})}};
}

Json of_map(const Rule& rule, Definitions& definitions) {
    Json map{{"type", Json::array({"object", "null"})}};
    Json required = Json::array();
    for (const Key& key : rule.keys) {
        if (!key.refused.empty()) {
            map["properties"][std::string(key.name)] = {{"not", Json::object()},
                                                        {"description", key.refused}};
            continue;
        }
        Json entry = schema_of(key.rule, definitions);
        entry["description"] = key.meaning;
        if (!key.initial.empty()) entry["default"] = Json::parse(key.initial);
        map["properties"][std::string(key.name)] = std::move(entry);
        if (key.required) required.push_back(key.name);
    }
    map["additionalProperties"] = rule.other ? schema_of(*rule.other, definitions) : Json(false);
    if (!required.empty()) map["required"] = std::move(required);
    if (rule.or_flag) return {{"anyOf", Json::array({map, {{"type", "boolean"}}})}};
    return map;
}

Json of_one(const Rule& rule, Definitions& definitions) {
    switch (rule.kind) {
        case Kind::map:
            if (rule.name.empty()) return of_map(rule, definitions);
            if (!definitions.contains(rule.name)) definitions.emplace(rule.name, of_map(rule, definitions));
            return {{"$ref", fmt::format("#/$defs/{}", rule.name)}};
        case Kind::text:
            return {{"type", Json::array({"string", "number"})}};
        case Kind::flag:
            return {{"type", "boolean"}};
        case Kind::integer:
        case Kind::number:
            return of_number(rule);
        case Kind::word:
            return {{"enum", rule.words}};
        case Kind::component:
            return {{"anyOf", Json::array({{{"type", "object"}, {"minProperties", 1}, {"maxProperties", 1}},
                                           {{"type", "string"}}})}};
        case Kind::components:
            return {{"type", Json::array({"object", "array", "string", "null"})}};
        case Kind::anything:
            break;
    }
    return Json::object();
}

Json schema_of(const Rule& rule, Definitions& definitions) {
    if (!rule.list) return of_one(rule, definitions);
    // Text with commas stands for a list of its parts, so any text may be one.
    const Json one = of_one(rule, definitions);
    return {{"anyOf", Json::array({one, {{"type", "array"}, {"items", one}}, {{"type", "string"}}})}};
}

}  // namespace

std::string config_schema() {
    Json schema{
        {"$schema", "https://json-schema.org/draft/2020-12/schema"},
        {"title", "kilter configuration"},
        {"description",
         "What kilter tunes, with which data, and what it promises. docs/config.md explains the keys."}};
    Definitions definitions;
    schema.update(schema_of(config::schema(), definitions));
    for (const auto& [name, definition] : definitions) schema["$defs"][name] = definition;
    return schema.dump(2) + "\n";
}

}  // namespace kilter
