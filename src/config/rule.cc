#include "config/rule.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/spelling.h"

namespace kilter::config {
namespace {

[[noreturn]] void reject(const Settings& value, std::string_view expected, std::string hint = {}) {
    try {
        value.reject(expected);
    } catch (const Error& error) {
        throw Error(error.what(), std::move(hint));
    }
}

// All maps of the schema that have a key of this name.
void find_homes(const Rule& rule, std::string_view key, const std::string& path,
                std::vector<std::string>& homes) {
    for (const Key& each : rule.keys) {
        if (each.name == key && each.refused.empty()) homes.push_back(path.empty() ? "the top level" : path);
        find_homes(each.rule, key,
                   path.empty() ? std::string(each.name) : fmt::format("{}.{}", path, each.name), homes);
    }
}

[[noreturn]] void reject_key(const Settings& map, const std::string& name, const Settings& value,
                             const Rule& rule) {
    std::vector<std::string_view> allowed;
    for (const Key& key : rule.keys)
        if (key.refused.empty()) allowed.push_back(key.name);
    std::vector<std::string> homes;
    find_homes(schema(), name, "", homes);
    const std::string_view near = nearest_word(name, allowed);
    std::string hint;
    if (!homes.empty())
        hint = fmt::format("'{}' belongs to {}; ", name, fmt::join(homes, " or "));
    else if (!near.empty())
        hint = fmt::format("did you mean '{}'? ", near);
    hint += fmt::format("allowed here: {}", fmt::join(allowed, ", "));
    const std::string& where = value.where().empty() ? map.where() : value.where();
    throw Error(fmt::format("{}{}there is no key '{}'", where, where.empty() ? "" : ": ", name), hint);
}

Settings checked_map(const Settings& value, const Rule& rule) {
    if (rule.or_flag && value.is_bool()) return value;
    if (!value.is_map()) reject(value, expectation(rule));
    Settings result{Settings::Map{}};
    result.at(value.where());
    for (const auto& [name, entry] : value.as_map()) {
        const auto known = std::ranges::find(rule.keys, name, &Key::name);
        if (known != rule.keys.end()) {
            if (!known->refused.empty())
                throw Error(fmt::format("{}{}'{}' is not for kilter", entry.where(),
                                        entry.where().empty() ? "" : ": ", name),
                            std::string(known->refused));
            // A key without a value says nothing, except where a map is expected.
            if (entry.is_null() && known->rule.kind != Kind::map && !known->required) continue;
            result.set(name, checked(entry, known->rule));
        } else if (rule.other) {
            result.set(name, checked(entry, *rule.other));
        } else {
            reject_key(value, name, entry, rule);
        }
    }
    for (const Key& key : rule.keys)
        if (key.required && !result.has(key.name))
            throw Error(fmt::format("{}{}'{}' is missing", value.where(), value.where().empty() ? "" : ": ",
                                    key.name),
                        fmt::format("{}: {}", key.name, key.meaning));
    return result;
}

// Numbers in quotes are numbers, and with `percent` "1%" is a hundredth.
std::optional<double> number_in(const std::string& text, bool percent) {
    std::string_view digits = text;
    while (digits.starts_with(' ')) digits.remove_prefix(1);
    while (digits.ends_with(' ')) digits.remove_suffix(1);
    const bool is_percent = percent && digits.ends_with('%');
    if (is_percent) digits.remove_suffix(1);
    while (digits.ends_with(' ')) digits.remove_suffix(1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return is_percent ? value / 100 : value;
}

Settings checked_number(const Settings& value, const Rule& rule) {
    std::optional<double> number;
    if (value.is_number()) number = value.as_number();
    if (value.is_text()) number = number_in(value.as_text(), rule.percent);
    const bool whole = rule.kind == Kind::integer;
    if (!number || !std::isfinite(*number) || (whole && *number != std::trunc(*number)))
        reject(value, expectation(rule), std::string(rule.hint));
    const bool low = rule.exclusive || rule.above_min ? *number <= rule.min : *number < rule.min;
    const bool high = rule.exclusive ? *number >= rule.max : *number > rule.max;
    if (low || high || std::abs(*number) > 9e15) reject(value, expectation(rule), std::string(rule.hint));
    Settings result = whole ? Settings(static_cast<int64_t>(*number)) : Settings(*number);
    return result.at(value.where());
}

Settings checked_word(const Settings& value, const Rule& rule) {
    if (!value.is_text()) reject(value, expectation(rule));
    const std::string& text = value.as_text();
    for (const auto& [word, why] : rule.refused_words)
        if (text == word)
            throw Error(fmt::format("{}{}'{}' is not for kilter", value.where(),
                                    value.where().empty() ? "" : ": ", text),
                        std::string(why));
    if (rule.words.empty() || std::ranges::find(rule.words, text) != rule.words.end()) return value;
    const std::string_view near = nearest_word(text, rule.words);
    reject(value, expectation(rule), near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}

// {name: settings}, or the name alone.
Settings checked_component(const Settings& value, const Rule& rule) {
    if (value.is_text())
        return Settings(Settings::Map{{value.as_text(), Settings().at(value.where())}}).at(value.where());
    if (!value.is_map() || value.as_map().empty()) reject(value, expectation(rule));
    if (rule.kind == Kind::component && value.as_map().size() > 1)
        reject(value, fmt::format("one name and its settings, not '{}' and '{}' as well",
                                  value.as_map()[0].first, value.as_map()[1].first));
    return value;
}

// Several components: a map, or a list of maps with one entry each, where a name may come twice. Always a list afterwards.
Settings checked_components(const Settings& value, const Rule& rule) {
    Settings::List list;
    if (value.is_list()) {
        Rule one = rule;
        one.kind = Kind::component;
        for (const Settings& each : value.as_list()) list.push_back(checked_component(each, one));
    } else if (value.is_text()) {
        list.push_back(checked_component(value, rule));
    } else {
        if (!value.is_map()) reject(value, expectation(rule));
        for (const auto& entry : value.as_map())
            list.push_back(Settings(Settings::Map{entry}).at(entry.second.where()));
    }
    return Settings(std::move(list)).at(value.where());
}

Settings::List split(const Settings& value) {
    const std::string& text = value.as_text();
    const char* separators = text.find(',') != std::string::npos ? "," : " \t\n";
    Settings::List parts;
    for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find_first_of(separators, begin), text.size());
        const size_t first = text.find_first_not_of(" \t\n", begin);
        const size_t last = end == 0 ? std::string::npos : text.find_last_not_of(" \t\n", end - 1);
        if (first < end && last != std::string::npos)
            parts.push_back(Settings(text.substr(first, last - first + 1)).at(value.where()));
        begin = end + 1;
    }
    return parts;
}

Settings checked_list(const Settings& value, const Rule& rule) {
    Rule element = rule;
    element.list = false;
    Settings::List list;
    if (value.is_map() && !value.is_null()) reject(value, expectation(rule));
    if (!value.is_null())
        for (const Settings& each : value.is_text() ? split(value) : value.as_list_or_one())
            list.push_back(checked(each, element));
    return Settings(std::move(list)).at(value.where());
}

}  // namespace

Settings checked(const Settings& value, const Rule& rule) {
    if (rule.list) return checked_list(value, rule);
    switch (rule.kind) {
        case Kind::map:
            return checked_map(value, rule);
        case Kind::flag:
            if (!value.is_bool()) reject(value, expectation(rule));
            return value;
        case Kind::integer:
        case Kind::number:
            return checked_number(value, rule);
        case Kind::text:
            // A name like 1978 is a number to YAML.
            if (value.is_number()) return Settings(value.describe()).at(value.where());
            [[fallthrough]];
        case Kind::word:
            return checked_word(value, rule);
        case Kind::component:
            return checked_component(value, rule);
        case Kind::components:
            return checked_components(value, rule);
        case Kind::anything:
            break;
    }
    return value;
}

std::string expectation(const Rule& rule) {
    std::string range;
    if (std::isfinite(rule.min) && std::isfinite(rule.max))
        range = rule.exclusive   ? fmt::format(" above {} and below {}", rule.min, rule.max)
                : rule.above_min ? fmt::format(" above {} and up to {}", rule.min, rule.max)
                                 : fmt::format(" from {} to {}", rule.min, rule.max);
    else if (std::isfinite(rule.min))
        range = fmt::format(" {} {}", rule.exclusive || rule.above_min ? "above" : "of at least", rule.min);
    std::string one;
    switch (rule.kind) {
        case Kind::map:
            one = rule.or_flag ? "a map, true or false" : "a map";
            break;
        case Kind::text:
            one = "text";
            break;
        case Kind::flag:
            one = "true or false";
            break;
        case Kind::integer:
            one = "a whole number" + range;
            break;
        case Kind::number:
            one = (rule.percent ? "a number or a percentage" : "a number") + range;
            break;
        case Kind::word:
            one = fmt::format("{}{}", rule.words.size() > 1 ? "one of " : "", fmt::join(rule.words, ", "));
            break;
        case Kind::component:
            one = "a name with its settings";
            break;
        case Kind::components:
            one = "names with their settings";
            break;
        case Kind::anything:
            one = "anything";
            break;
    }
    return rule.list ? fmt::format("{}, or a list of such", one) : one;
}

}  // namespace kilter::config
