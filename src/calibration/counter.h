// The inner loops of calibration: per-channel extremes and sums, and counting into a histogram with 32-bit counters.
// Counting takes about 0.4 ns per value that is not zero on AVX-512, scanning a tenth of that where the data is near.
#pragma once

#include <span>
#include <vector>

#include "kilter/calibration/histogram.h"

namespace kilter {

//! Values the loops take at a time: few enough to stay in the first-level cache between the two loops.
inline constexpr size_t kCounterTile = 4096;

//! Counts into a histogram through a table of 16-bit counters: after a run of the network the table lies far from the core,
//! and fetching it costs as much as counting, so it is small.
class Counter {
  public:
    //! Makes the range hold this magnitude.
    void cover(float largest);
    //! At most kCounterTile values, all finite and covered.
    void count(std::span<const float> values);
    //! Asks for the counters before they are needed.
    void prefetch() const;
    Histogram histogram() const;  // of all that was counted

  private:
    void flush(Histogram& histogram) const;

    Histogram histogram_;  // what was counted before the range grew
    int exponent_ = Histogram::kLeastExponent;
    int64_t zeros_ = 0;
    bool negative_ = false;           // maybe some value was
    std::vector<uint16_t> bins_;      // positive, then negative; empty until something is counted
    std::vector<uint32_t> overflow_;  // how often a bin started again from zero
};

struct Scan {
    float largest = 0;   // magnitude
    bool finite = true;  // when not, nothing else means anything
};

//! Rows of `channels` neighbouring values, `stride` apart. Lowers `low`, raises `high` and adds to `sum`, per channel.
//! Sums are float32 within the call (a tile) and double across calls, in the order of the rows on every machine.
Scan scan_rows(const float* data, int64_t rows, int64_t stride, int64_t channels, float* low, float* high,
               double* sum);

}  // namespace kilter
