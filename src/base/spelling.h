// Which of the words that are allowed a misspelt one most likely means.
#pragma once

#include <span>
#include <string_view>

namespace kilter {

//! The nearest candidate, ignoring case; empty when none is near (more than a third of the letters wrong).
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace kilter
