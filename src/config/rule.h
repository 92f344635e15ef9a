// Rule: what a value of a configuration may be. The table of all keys (schema.cc) is made of them; checking files, the
// JSON Schema and the documentation all follow from that one table.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kilter/base/settings.h"

namespace kilter::config {

enum class Kind {
    map,  // of known keys, or any keys with values of one kind
    text,
    flag,  // true or false
    integer,
    number,
    word,        // one of `words`
    component,   // a name and its settings: {topk: 1}
    components,  // several, in order: {Resize: {…}, CenterCrop: {…}}
    anything,
};

struct Key;

struct Rule {
    Kind kind = Kind::anything;
    bool list = false;  // a list; a single value is a list of one, and text is split at commas
    std::vector<std::string_view> words;
    std::vector<std::pair<std::string_view, std::string_view>> refused_words;  // and why
    double min = -std::numeric_limits<double>::infinity();
    double max = std::numeric_limits<double>::infinity();
    bool exclusive = false;             // the ends do not belong to the range
    bool above_min = false;             // only the lower end does not
    bool percent = false;               // "1%" is 0.01
    std::string_view hint;              // for values out of range
    std::vector<Key> keys;              // of a map
    std::shared_ptr<const Rule> other;  // of a map: what keys that are not among `keys` hold
    bool or_flag = false;               // of a map: true or false is allowed, too
    std::string_view name;  // of a map that stands in several places: the JSON Schema defines it once
};

struct Key {
    std::string_view name;
    Rule rule;
    std::string_view initial;  // the default as JSON; empty: none
    std::string_view meaning;
    std::string_view refused = {};  // why kilter does not take it
    bool required = false;
};

//! The rule of a whole file.
const Rule& schema();

//! The value in the form the rule asks for: numbers as numbers, lists as lists. Throws Error when it does not fit.
Settings checked(const Settings& value, const Rule& rule);

//! "a number above -1 and below 1": for messages.
std::string expectation(const Rule& rule);

}  // namespace kilter::config
