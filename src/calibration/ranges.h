// The range algorithms, one file each. All read the same statistics; docs/calibration.md describes them.
#pragma once

#include "kilter/calibration/stats.h"

namespace kilter {

//! Largest magnitude t such that [-t, t] (or [0, t] of what is never negative) is the range MXNet's entropy mode chooses.
float kl_threshold(const ValueStats& stats, int levels);
Range percentile_range(const ValueStats& stats, const RangeOptions& options);
Range mse_range(const ValueStats& stats, const RangeOptions& options);

}  // namespace kilter
