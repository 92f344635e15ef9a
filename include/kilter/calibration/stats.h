// Stats: what one FP32 pass over the calibration samples says about every activation, and the ranges that follow from it.
// All range algorithms read the same Stats, so nothing is ever calibrated twice.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kilter/calibration/exact_sum.h"
#include "kilter/calibration/histogram.h"

namespace kilter {

struct Range {
    float min = 0, max = 0;
    bool operator==(const Range&) const = default;
};

struct ValueStats {
    int64_t count = 0;  // elements seen; everything else is meaningless when there were none
    float min = 0, max = 0;
    double mean = 0;
    //! -1: no per-channel figures (scalars, and values whose channel axis changes its size from sample to sample).
    //! Otherwise 1 for what convolutions and pools read or write, the last axis for what matrix products do.
    int channel_axis = -1;
    std::vector<float> channel_min, channel_max;
    std::vector<double> channel_mean;
    //! Covers [min, max]. Counts every value of a small activation, an even share of a large one (of more than 16 thousand
    //! values per sample), always at the same places.
    Histogram histogram;
    //! Exact, one per channel (one in all without channels): what the means are made of and what makes merging exact.
    std::vector<ExactSum> sums;

    //! Takes in what another pass saw of the same value. Exact, so the order of merging does not matter.
    void merge(const ValueStats& other);
    void update_means();  // from count and sums
    bool operator==(const ValueStats&) const = default;
};

//! Keyed by value name of the optimized graph.
struct Stats {
    std::map<std::string, ValueStats, std::less<>> values;
    int64_t samples = 0;  // sets of inputs seen
    const ValueStats* find(std::string_view value) const;

    //! Takes in another pass, e.g. over other samples on another machine. Exact and independent of the order.
    void merge(const Stats& other);
    //! Writes a compact binary file, complete or not at all. Throws Error.
    void save(const std::filesystem::path& path) const;
    //! Throws Error that names the file when it is not a statistics file, of another version, cut off or damaged.
    static Stats load(const std::filesystem::path& path);
    bool operator==(const Stats&) const = default;
};

enum class RangeAlgorithm { minmax, kl, percentile, mse };
std::string_view name(RangeAlgorithm algorithm);
RangeAlgorithm range_algorithm(std::string_view name);  // throws Error listing the names

struct RangeOptions {
    RangeAlgorithm algorithm = RangeAlgorithm::minmax;
    double percentile = 99.99;  // of the values kept, for `percentile`
    bool symmetric = false;     // min = -max (unless the values are never negative, then min = 0)
    int levels = 256;           // of the integer type, for kl and mse
};

//! The range to quantize a value with; always contains zero and never exceeds what was seen (of both signs, when
//! symmetric). docs/calibration.md says what each algorithm does. Throws Error when an option makes no sense.
Range choose_range(const ValueStats& stats, const RangeOptions& options);

}  // namespace kilter
