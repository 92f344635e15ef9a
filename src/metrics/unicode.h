// The little of Unicode that metrics of text need, as Python's strings and regular expressions define it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kilter::metrics {

using Points = std::vector<int32_t>;  // code points

//! Bytes that are no UTF-8 become U+FFFD.
Points decode(std::string_view text);
std::string encode(const Points& points);

bool is_space(int32_t point);        // what str.split() splits at
bool is_word(int32_t point);         // \w
bool is_digit(int32_t point);        // \d
bool is_punctuation(int32_t point);  // categories P*
bool is_symbol(int32_t point);       // categories S*
int32_t lower(int32_t point);

//! Words between white space.
std::vector<std::string> split(const Points& points);

}  // namespace kilter::metrics
