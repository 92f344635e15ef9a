#include "quantization/pattern.h"

#include "base/fail.h"

namespace kilter {
namespace {

// Greedy with one point to return to: the last star.
bool glob_matches(std::string_view pattern, std::string_view text) {
    size_t p = 0, t = 0;
    size_t star = std::string_view::npos, resume = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace

Pattern::Pattern(std::string_view text) : text_(text) {
    constexpr std::string_view kRegex = "re:";
    if (text.starts_with(kRegex)) {
        kind_ = Kind::regex;
        try {
            regex_ = std::regex(text_.substr(kRegex.size()));
        } catch (const std::regex_error& error) {
            fail("'{}' is no regular expression: {}", text, error.what());
        }
    } else if (text.find_first_of("*?") != std::string_view::npos) {
        kind_ = Kind::glob;
    }
}

bool Pattern::matches(std::string_view name) const {
    if (kind_ == Kind::exact) return name == text_;
    if (kind_ == Kind::glob) return name == text_ || glob_matches(text_, name);
    return std::regex_match(name.begin(), name.end(), regex_);
}

}  // namespace kilter
