// Settings: a tree of named options, as a configuration file, a command line or a program gives them.
// Every value remembers where it came from, so that whoever reads it can say what is wrong and where.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kilter {

class Settings {
  public:
    using List = std::vector<Settings>;
    using Map = std::vector<std::pair<std::string, Settings>>;  // in the order of the source

    Settings() = default;  // nothing: reads as an empty map
    Settings(bool value) : value_(value) {}
    Settings(int value) : value_(int64_t{value}) {}
    Settings(int64_t value) : value_(value) {}
    Settings(double value) : value_(value) {}
    Settings(const char* value) : value_(std::string(value)) {}
    Settings(std::string value) : value_(std::move(value)) {}
    Settings(List values) : value_(std::move(values)) {}
    Settings(Map values) : value_(std::move(values)) {}
    Settings(std::initializer_list<Map::value_type> values) : value_(Map(values)) {}

    //! Where errors say this value stands, e.g. "conf.yaml:12: tuning.exit_policy.timeout"; may be empty.
    const std::string& where() const { return where_; }
    Settings& at(std::string where) {
        where_ = std::move(where);
        return *this;
    }

    bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
    bool is_bool() const { return std::holds_alternative<bool>(value_); }
    bool is_number() const;  // whole or not
    bool is_text() const { return std::holds_alternative<std::string>(value_); }
    bool is_list() const { return std::holds_alternative<List>(value_); }
    bool is_map() const { return is_null() || std::holds_alternative<Map>(value_); }

    //! The value in one of its forms. They throw Error that says where, what was expected and what was found.
    bool as_bool() const;
    int64_t as_int() const;  // also a number without fraction
    double as_number() const;
    const std::string& as_text() const;
    const List& as_list() const;
    const Map& as_map() const;
    //! A list, or one value where a list of one is meant.
    List as_list_or_one() const;
    std::vector<int64_t> as_ints() const;  // so these two
    std::vector<double> as_numbers() const;

    //! The value of a key of a map; null when there is none.
    const Settings* find(std::string_view key) const;
    bool has(std::string_view key) const { return find(key) != nullptr; }
    //! The value of a key, which must be there.
    const Settings& get(std::string_view key) const;
    bool get(std::string_view key, bool fallback) const;
    int64_t get(std::string_view key, int64_t fallback) const;
    int64_t get(std::string_view key, int fallback) const { return get(key, int64_t{fallback}); }
    double get(std::string_view key, double fallback) const;
    std::string get(std::string_view key, std::string_view fallback) const;
    std::string get(std::string_view key, const char* fallback) const {
        return get(key, std::string_view(fallback));
    }
    void set(std::string_view key, Settings value);

    //! Throws Error for the first key that is not among these, with the nearest one as a hint.
    void allow_keys(std::initializer_list<std::string_view> keys) const;
    //! "a number", "the text 'abc'", …: for messages.
    std::string describe() const;
    //! Throws Error "where: expected …, found …".
    [[noreturn]] void reject(std::string_view expected) const;

    bool operator==(const Settings& other) const { return value_ == other.value_; }

  private:
    std::variant<std::monostate, bool, int64_t, double, std::string, List, Map> value_;
    std::string where_;
};

//! A dataset, transform or metric as a configuration names it: one key and its settings.
struct Component {
    std::string name;
    Settings settings;
};

}  // namespace kilter
