// Enumerators and the words users write for them, in one place per enumeration.
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "base/fail.h"

namespace kilter {

template <class Enum>
struct Word {
    Enum value;
    std::string_view text;
};

template <class Enum, size_t N>
std::string_view word_of(const Word<Enum> (&words)[N], Enum value) {
    return std::ranges::find(words, value, &Word<Enum>::value)->text;
}

//! Underscores count as hyphens. Throws Error that lists the words.
template <class Enum, size_t N>
Enum parse_word(const Word<Enum> (&words)[N], std::string_view what, std::string_view text) {
    std::string wanted(text);
    std::ranges::replace(wanted, '_', '-');
    std::string known;
    for (const Word<Enum>& word : words) {
        if (word.text == wanted) return word.value;
        known += fmt::format("{}{}", known.empty() ? "" : ", ", word.text);
    }
    fail("unknown {} '{}'; known are {}", what, text, known);
}

}  // namespace kilter
