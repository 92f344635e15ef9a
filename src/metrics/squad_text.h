// How SQuAD v1.1 compares an answer with those of people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kilter::metrics {

//! Lower case, without punctuation and articles, split into words.
std::vector<std::string> answer_words(std::string_view answer);
//! Overlap of words, 0 to 1.
double answer_f1(std::string_view said, std::string_view truth);
//! 1 when the same words are left, 0 otherwise.
double answer_match(std::string_view said, std::string_view truth);

}  // namespace kilter::metrics
