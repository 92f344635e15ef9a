// What the strategies that sample share: random candidates, and one number that says how good a trial is.
#pragma once

#include "kilter/tuning/search.h"

namespace kilter {

//! A random choice for every operator. How many fall back to floating point is drawn first, evenly between none and all: drawn for each
//! operator alone, the share would be the same in every candidate.
Candidate random_candidate(Search& search);

//! A random candidate that was not evaluated yet; nothing when all were.
std::optional<Candidate> new_candidate(Search& search);
bool is_known(const Search& search, const Candidate& candidate);

//! The next candidate in order, the choice of the last operator changing fastest, the variant slowest. False after the last one.
bool advance(const Space& space, Candidate& candidate);

//! Higher is better: cheap trials that keep the promise, then cheap ones that nearly do. `accuracy_weight` scales the penalty.
double utility(const Trial& trial, double accuracy_weight = 1, double cost_weight = 1);

}  // namespace kilter
