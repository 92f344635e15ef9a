// Pair merging: what a histogram does when its range doubles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace kilter {

//! Bin i goes to bin i / 2^doublings. Exact: floor(floor(x / w) / 2) = floor(x / 2w).
template <class Count>
void merge_bins(std::span<Count> bins, int doublings) {
    const int shift = std::min(doublings, 31);
    if (shift <= 0) return;
    for (size_t i = 0; i < bins.size(); ++i) {
        const Count count = bins[i];
        bins[i] = 0;
        bins[i >> shift] += count;
    }
}

}  // namespace kilter
