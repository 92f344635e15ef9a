#include "formats/mxnet/parameters.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/fail.h"

namespace kilter::mxnet {
namespace {

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(" \t\n");
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

template <class T>
std::optional<T> parse(std::string_view text) {
    T value{};
    if (text.starts_with('+')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// "2L" is how Python 2 wrote it.
std::optional<int64_t> parse_integer(std::string_view text) {
    if (text.ends_with('L')) text.remove_suffix(1);
    if (const auto value = parse<int64_t>(text)) return value;
    const auto real = parse<double>(text);
    if (real && std::fabs(*real) < 0x1p62 && *real == std::trunc(*real)) return static_cast<int64_t>(*real);
    return std::nullopt;
}

struct NamedType {
    std::string_view name;
    DType dtype;
};
constexpr std::array kNames{
    NamedType{"float32", DType::f32}, NamedType{"float64", DType::f64},  NamedType{"float16", DType::f16},
    NamedType{"uint8", DType::u8},    NamedType{"int32", DType::i32},    NamedType{"int8", DType::i8},
    NamedType{"int64", DType::i64},   NamedType{"bool", DType::boolean}, NamedType{"bfloat16", DType::bf16},
};

}  // namespace

bool Parameters::has(std::string_view name) const {
    const std::string* found = node_.find(name);
    return found != nullptr && trimmed(*found) != "None";
}

std::string Parameters::text(std::string_view name, std::string_view absent) const {
    return has(name) ? std::string(trimmed(*node_.find(name))) : std::string(absent);
}

int64_t Parameters::integer(std::string_view name, int64_t absent) const {
    if (!has(name)) return absent;
    const std::string value = text(name);
    const auto parsed = parse_integer(value);
    require(parsed.has_value(), "{} must be a whole number, found '{}'", name, value);
    return *parsed;
}

double Parameters::real(std::string_view name, double absent) const {
    if (!has(name)) return absent;
    const std::string value = text(name);
    const auto parsed = parse<double>(value);
    require(parsed.has_value(), "{} must be a number, found '{}'", name, value);
    return *parsed;
}

bool Parameters::flag(std::string_view name, bool absent) const {
    if (!has(name)) return absent;
    const std::string value = text(name);
    if (value == "True" || value == "true" || value == "1") return true;
    require(value == "False" || value == "false" || value == "0", "{} must be True or False, found '{}'",
            name, value);
    return false;
}

std::vector<std::optional<int64_t>> Parameters::open_integers(std::string_view name) const {
    const std::string value = text(name);
    std::string_view rest = value;
    if (!rest.empty() && (rest.front() == '(' || rest.front() == '[')) {
        require(rest.size() >= 2 && (rest.back() == ')' || rest.back() == ']'), "{}: '{}' is not closed",
                name, value);
        rest = rest.substr(1, rest.size() - 2);
    }
    std::vector<std::optional<int64_t>> entries;
    while (!trimmed(rest).empty()) {
        const size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view entry = trimmed(rest.substr(0, comma));
        const auto parsed = parse_integer(entry);
        require(parsed.has_value() || entry == "None", "{} must be a list of whole numbers, found '{}'", name,
                value);
        entries.push_back(parsed);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return entries;
}

std::vector<int64_t> Parameters::integers(std::string_view name, std::vector<int64_t> absent) const {
    if (!has(name)) return absent;
    std::vector<int64_t> values;
    for (const std::optional<int64_t>& entry : open_integers(name)) {
        require(entry.has_value(), "{}: None is no number here", name);
        values.push_back(*entry);
    }
    return values;
}

DType Parameters::dtype(std::string_view name, DType absent) const {
    if (!has(name)) return absent;
    const std::string value = text(name);
    for (const NamedType& type : kNames)
        if (type.name == value) return type.dtype;
    constexpr std::array kNumbers{DType::f32, DType::f64, DType::f16, DType::u8,
                                  DType::i32, DType::i8,  DType::i64, DType::boolean};
    const auto number = parse_integer(value);
    require(number && *number >= 0 && *number < static_cast<int64_t>(kNumbers.size()),
            "{}: unknown element type '{}'", name, value);
    return kNumbers[static_cast<size_t>(*number)];
}

}  // namespace kilter::mxnet
