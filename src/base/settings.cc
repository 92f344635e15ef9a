#include "kilter/base/settings.h"

#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/spelling.h"

namespace kilter {

bool Settings::is_number() const {
    return std::holds_alternative<int64_t>(value_) || std::holds_alternative<double>(value_);
}

std::string Settings::describe() const {
    if (is_null()) return "nothing";
    if (const bool* value = std::get_if<bool>(&value_)) return *value ? "true" : "false";
    if (const int64_t* value = std::get_if<int64_t>(&value_)) return fmt::format("{}", *value);
    if (const double* value = std::get_if<double>(&value_)) return fmt::format("{}", *value);
    if (is_text()) return fmt::format("'{}'", as_text().substr(0, 80));
    return is_list() ? "a list" : "a map";
}

void Settings::reject(std::string_view expected) const {
    throw Error(
        fmt::format("{}{}expected {}, found {}", where_, where_.empty() ? "" : ": ", expected, describe()));
}

bool Settings::as_bool() const {
    if (const bool* value = std::get_if<bool>(&value_)) return *value;
    reject("true or false");
}

int64_t Settings::as_int() const {
    if (const int64_t* value = std::get_if<int64_t>(&value_)) return *value;
    if (const double* value = std::get_if<double>(&value_))
        if (*value == std::trunc(*value) && std::abs(*value) < 9e15) return static_cast<int64_t>(*value);
    reject("a whole number");
}

double Settings::as_number() const {
    if (const int64_t* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
    if (const double* value = std::get_if<double>(&value_)) return *value;
    reject("a number");
}

const std::string& Settings::as_text() const {
    if (const std::string* value = std::get_if<std::string>(&value_)) return *value;
    reject("text");
}

const Settings::List& Settings::as_list() const {
    if (const List* value = std::get_if<List>(&value_)) return *value;
    reject("a list");
}

const Settings::Map& Settings::as_map() const {
    static const Map kEmpty;
    if (is_null()) return kEmpty;
    if (const Map* value = std::get_if<Map>(&value_)) return *value;
    reject("a map");
}

Settings::List Settings::as_list_or_one() const {
    if (is_list()) return as_list();
    if (is_map()) reject("a value or a list of values");
    return {*this};
}

std::vector<int64_t> Settings::as_ints() const {
    std::vector<int64_t> values;
    for (const Settings& value : as_list_or_one()) values.push_back(value.as_int());
    return values;
}

std::vector<double> Settings::as_numbers() const {
    std::vector<double> values;
    for (const Settings& value : as_list_or_one()) values.push_back(value.as_number());
    return values;
}

const Settings* Settings::find(std::string_view key) const {
    for (const auto& [name, value] : as_map())
        if (name == key) return &value;
    return nullptr;
}

const Settings& Settings::get(std::string_view key) const {
    if (const Settings* value = find(key)) return *value;
    fail("{}{}'{}' is missing", where_, where_.empty() ? "" : ": ", key);
}

bool Settings::get(std::string_view key, bool fallback) const {
    const Settings* value = find(key);
    return value ? value->as_bool() : fallback;
}

int64_t Settings::get(std::string_view key, int64_t fallback) const {
    const Settings* value = find(key);
    return value ? value->as_int() : fallback;
}

double Settings::get(std::string_view key, double fallback) const {
    const Settings* value = find(key);
    return value ? value->as_number() : fallback;
}

std::string Settings::get(std::string_view key, std::string_view fallback) const {
    const Settings* value = find(key);
    return value ? value->as_text() : std::string(fallback);
}

void Settings::set(std::string_view key, Settings value) {
    if (is_null()) value_ = Map{};
    if (!is_map()) reject("a map");
    Map& entries = std::get<Map>(value_);
    for (auto& [name, entry] : entries)
        if (name == key) {
            entry = std::move(value);
            return;
        }
    entries.emplace_back(key, std::move(value));
}

void Settings::allow_keys(std::initializer_list<std::string_view> keys) const {
    for (const auto& [name, value] : as_map()) {
        bool known = false;
        for (const std::string_view key : keys) known = known || key == name;
        if (known) continue;
        const std::string_view near = nearest_word(name, {keys.begin(), keys.size()});
        const std::string& where = value.where().empty() ? where_ : value.where();
        throw Error(fmt::format("{}{}there is no key '{}'", where, where.empty() ? "" : ": ", name),
                    near.empty() ? fmt::format("allowed: {}", fmt::join(keys, ", "))
                                 : fmt::format("did you mean '{}'?", near));
    }
}

}  // namespace kilter
