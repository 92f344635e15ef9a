// What the classic strategies share: model-wise trials first, then operators that return to floating point one after another.
#pragma once

#include "kilter/tuning/search.h"

namespace kilter {

//! The candidate with operator `index` in floating point: of this precision, or the one that costs least accuracy.
Candidate with_float(const Space& space, Candidate candidate, size_t index,
                     std::optional<Precision> precision = {});

//! Tries the model-wise candidates of every variant the user asked for, at most `limit` of each, and returns the most accurate
//! trial; of equal ones the later.
const Trial& try_model_wise(Search& search, size_t limit = 256);

//! Operators in the order given return to floating point: first each is kept only when the accuracy gets strictly better, then,
//! from the start again, all of them one after another.
void accumulate_fallback(Search& search, const Candidate& base, const std::vector<size_t>& order,
                         std::optional<Precision> precision = {});

//! Indices in descending order of the scores; of equal ones the later operator first.
std::vector<size_t> by_score(const std::vector<size_t>& operators, const std::vector<double>& scores);

}  // namespace kilter
