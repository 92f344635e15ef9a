// The inner loops of calibration: per-channel extremes and sums, and counting into a histogram with 32-bit counters.
// About a third of a nanosecond per value on AVX-512; most of that is one increment per value that is not zero.
#pragma once

#include <span>
#include <vector>

#include "kilter/calibration/histogram.h"

namespace kilter {

//! Values the loops take at a time: few enough to stay in the first-level cache between the two loops.
inline constexpr size_t kCounterTile = 4096;

//! Counts fast, for up to 2^32 values; flush() hands them on to a Histogram.
class Counter {
  public:
    //! Makes the range hold this magnitude.
    void cover(float largest);
    //! At most kCounterTile values, all finite and covered.
    void count(std::span<const float> values);
    //! Asks for the counters before they are needed: after a run of the network they lie far away.
    void prefetch() const;
    //! Must be flushed before it may count another tile.
    bool full() const { return pending_ > kMostPending; }
    void flush(Histogram& histogram);

  private:
    static constexpr int64_t kMostPending = (int64_t{1} << 32) - 1 - static_cast<int64_t>(kCounterTile);
    int exponent_ = Histogram::kLeastExponent;
    int64_t pending_ = 0, zeros_ = 0;
    std::vector<uint32_t> bins_;  // positive, then negative; empty until something is counted
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
