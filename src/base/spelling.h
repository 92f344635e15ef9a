// Which of the words that are allowed a misspelt one most likely means.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kilter {

//! The nearest candidate, ignoring case; empty when none is near (more than a third of the letters wrong).
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

//! Throws Error "WHERE: there is no WHAT 'NAME'" with the nearest of `names` as a hint, or all of them when none is near.
[[noreturn]] void fail_unknown(std::string_view what, std::string_view name,
                               const std::vector<std::string>& names, const std::string& where = {});

}  // namespace kilter
