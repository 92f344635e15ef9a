// Ranks and what is made of them: correlations and the area under the ROC curve.
#pragma once

#include <span>
#include <vector>

namespace kilter::metrics {

//! 1 for the smallest; equal values share the mean of their ranks.
std::vector<double> ranks(std::span<const double> values);
//! Pearson's correlation; 0 when one side does not vary.
double correlation(std::span<const double> a, std::span<const double> b);

}  // namespace kilter::metrics
