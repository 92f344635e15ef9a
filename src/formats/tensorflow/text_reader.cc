// Text to GraphDef: `name: value`, `name { … }`, lists in brackets, comments, strings with C's escapes.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include <protozero/pbf_writer.hpp>

#include "base/fail.h"
#include "formats/protobuf/message.h"
#include "formats/tensorflow/text_format.h"
#include "formats/tensorflow/text_schema.h"
#include "formats/tensorflow/tf_type.h"

namespace kilter::tensorflow {
namespace {

// Messages nest at most this deep: far beyond any real graph, well within the stack.
constexpr int kMaxTextDepth = 100;

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '+' || c == '-';
}

class TextParser {
  public:
    explicit TextParser(std::string_view text) : text_(text) {}

    std::string parse() { return fields(graph_def_schema(), '\0', 0); }

  private:
    template <class... Args>
    [[noreturn]] void error(fmt::format_string<Args...> format, Args&&... args) const {
        const auto line =
            std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
        fail("line {}: {}", line, fmt::format(format, std::forward<Args>(args)...));
    }

    void skip_space() {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '#') {
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
                ++at_;
            } else {
                return;
            }
        }
    }

    char peek() {
        skip_space();
        return at_ < text_.size() ? text_[at_] : '\0';
    }

    bool accept(char c) {
        if (peek() != c || at_ >= text_.size()) return false;
        ++at_;
        return true;
    }

    std::string_view word(std::string_view what) {
        peek();
        const size_t begin = at_;
        while (at_ < text_.size() && is_word(text_[at_])) ++at_;
        if (at_ == begin) error("expected {}", what);
        return text_.substr(begin, at_ - begin);
    }

    // The fields of a message up to its closing bracket, or the end of the text.
    std::string fields(const TextMessage& message, char close, int depth) {
        if (depth > kMaxTextDepth) error("messages are nested more than {} deep", kMaxTextDepth);
        protobuf::Message result;
        while (true) {
            skip_space();
            if (at_ >= text_.size()) {
                if (close != '\0') error("'{}' is missing", close);
                break;
            }
            if (close != '\0' && accept(close)) break;
            const std::string_view name = word("the name of a field");
            const TextField* field = message.find(name);
            if (field == nullptr) error("{} has no field '{}'", message.name, name);
            const bool colon = accept(':');
            if (field->kind != TextKind::message && !colon) error("':' is missing after '{}'", name);
            if (colon && accept('[')) {
                if (!accept(']')) {
                    do value(*field, result, depth);
                    while (accept(','));
                    if (!accept(']')) error("']' is missing");
                }
            } else {
                value(*field, result, depth);
            }
            if (!accept(',')) accept(';');
        }
        return result.str();
    }

    void value(const TextField& field, protobuf::Message& result, int depth) {
        switch (field.kind) {
            case TextKind::message: {
                const bool angle = accept('<');
                if (!angle && !accept('{')) error("'{{' is missing after '{}'", field.name);
                result.bytes(field.number, fields(*field.message, angle ? '>' : '}', depth + 1));
                break;
            }
            case TextKind::text:
                result.bytes(field.number, string());
                break;
            case TextKind::boolean:
                result.integer(field.number, boolean());
                break;
            case TextKind::integer:
                result.integer(field.number, number<int64_t>());
                break;
            case TextKind::unsigned_integer:
                result.integer(field.number, static_cast<int64_t>(number<uint64_t>()));
                break;
            case TextKind::real:
                result.real(field.number, static_cast<float>(real()));
                break;
            case TextKind::wide_real: {
                std::string bytes;
                protozero::pbf_writer(bytes).add_double(field.number, real());
                result.verbatim(bytes);
                break;
            }
            case TextKind::type:
                result.integer(field.number, type().code);
                break;
            case TextKind::full_type:
                result.integer(field.number, full_type());
                break;
        }
    }

    int64_t boolean() {
        const std::string_view text = word("true or false");
        if (text == "true" || text == "True" || text == "t" || text == "1") return 1;
        if (text == "false" || text == "False" || text == "f" || text == "0") return 0;
        error("expected true or false, found '{}'", text);
    }

    template <class T>
    T number() {
        const std::string_view text = word("a number");
        std::string digits(text);
        const size_t sign = text.starts_with('-') ? 1 : 0;
        const bool hexadecimal = text.substr(sign).starts_with("0x") || text.substr(sign).starts_with("0X");
        if (hexadecimal) digits.erase(sign, 2);
        T result = 0;
        const auto [end, problem] =
            std::from_chars(digits.data(), digits.data() + digits.size(), result, hexadecimal ? 16 : 10);
        if (problem != std::errc() || end != digits.data() + digits.size())
            error("expected a whole number, found '{}'", text);
        return result;
    }

    double real() {
        std::string_view text = word("a number");
        const std::string_view whole = text;
        const bool negative = text.starts_with('-');
        if (negative || text.starts_with('+')) text.remove_prefix(1);
        if (text == "inf" || text == "infinity" || text == "Infinity")
            return negative ? -std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::infinity();
        if (text == "nan" || text == "NaN") return std::numeric_limits<double>::quiet_NaN();
        if (text.ends_with('f') || text.ends_with('F')) text.remove_suffix(1);
        double result = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), result);
        if (problem != std::errc() || end != text.data() + text.size())
            error("expected a number, found '{}'", whole);
        return negative ? -result : result;
    }

    TfType type() {
        const char first = peek();
        if ((first >= '0' && first <= '9') || first == '-') return {number<int64_t>()};
        const std::string_view text = word("a type");
        const std::optional<TfType> found = type_from_text(text);
        if (!found) error("'{}' is no type", text);
        return *found;
    }

    int64_t full_type() {
        const char first = peek();
        if ((first >= '0' && first <= '9') || first == '-') return number<int64_t>();
        const std::string_view text = word("a type");
        const std::optional<int64_t> found = full_type_from_text(text);
        if (!found) error("'{}' is no type", text);
        return *found;
    }

    // One or several literals in a row.
    std::string string() {
        std::string result;
        char quote = peek();
        if (quote != '"' && quote != '\'') error("expected a string");
        while (quote == '"' || quote == '\'') {
            ++at_;
            while (true) {
                if (at_ >= text_.size() || text_[at_] == '\n') error("a string does not end");
                const char c = text_[at_++];
                if (c == quote) break;
                result += c == '\\' ? escaped() : c;
            }
            quote = peek();
        }
        return result;
    }

    char escaped() {
        if (at_ >= text_.size()) error("a string does not end");
        const char c = text_[at_++];
        switch (c) {
            case 'a':
                return '\a';
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'v':
                return '\v';
            case '\\':
            case '\'':
            case '"':
            case '?':
                return c;
            case 'x':
            case 'X':
                return digits(16, 2);
            default:
                if (c < '0' || c > '7') error("'\\{}' is no escape", c);
                --at_;
                return digits(8, 3);
        }
    }

    char digits(int base, size_t most) {
        unsigned value = 0;
        const char* begin = text_.data() + at_;
        const char* limit = begin + std::min(most, text_.size() - at_);
        const auto [end, problem] = std::from_chars(begin, limit, value, base);
        if (problem != std::errc() || end == begin || value > 0xFF)
            error("a number in a string is no character");
        at_ += static_cast<size_t>(end - begin);
        return static_cast<char>(value);
    }

    std::string_view text_;
    size_t at_ = 0;
};

}  // namespace

bool is_text_graph(std::string_view content) {
    // A binary graph may begin like a comment: the tag of its first node is a newline, and its length may be that of '#'.
    // So what counts is the first field, behind space and comments.
    while (true) {
        const size_t begin = content.find_first_not_of(" \t\r\n");
        if (begin == std::string_view::npos) return false;
        content.remove_prefix(begin);
        if (!content.starts_with('#')) break;
        content.remove_prefix(std::min(content.find('\n'), content.size()));
    }
    for (const std::string_view name : {"node", "versions", "library", "version"}) {
        if (!content.starts_with(name)) continue;
        const size_t next = content.find_first_not_of(" \t\r\n", name.size());
        if (next != std::string_view::npos &&
            (content[next] == '{' || content[next] == ':' || content[next] == '<'))
            return true;
    }
    return false;
}

std::string graph_def_from_text(std::string_view text) { return TextParser(text).parse(); }

}  // namespace kilter::tensorflow
