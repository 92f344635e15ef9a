// Stats: what one FP32 pass over the calibration samples says about every activation, and the ranges that follow from it.
// All range algorithms read the same Stats, so nothing is ever calibrated twice.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kilter/calibration/histogram.h"

namespace kilter {

struct Range {
    float min = 0, max = 0;
    bool operator==(const Range&) const = default;
};

struct ValueStats {
    int64_t count = 0;  // elements seen
    float min = 0, max = 0;
    double mean = 0;
    int channel_axis = -1;  // -1: no per-channel figures (scalars, unknown layout)
    std::vector<float> channel_min, channel_max;
    std::vector<double> channel_mean;
    Histogram histogram;
};

//! Keyed by value name of the optimized graph.
struct Stats {
    std::map<std::string, ValueStats, std::less<>> values;
    int64_t samples = 0;  // calibration samples seen
    const ValueStats* find(std::string_view value) const;
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

//! The range to quantize a value with; always contains zero.
Range choose_range(const ValueStats& stats, const RangeOptions& options);

}  // namespace kilter
