// Patterns for names: exact, glob (* and ?) or, after "re:", a regular expression for the whole name.
#pragma once

#include <regex>
#include <string>
#include <string_view>

namespace kilter {

class Pattern {
  public:
    //! Throws Error when the regular expression is malformed.
    explicit Pattern(std::string_view text);
    bool matches(std::string_view name) const;

  private:
    enum class Kind { exact, glob, regex } kind_ = Kind::exact;
    std::string text_;
    std::regex regex_;
};

}  // namespace kilter
