// Histogram: counts of |x| and sign over bins whose width is a power of two and doubles by merging pairs. The result does
// not depend on the order of the samples, and merging two histograms is exact.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kilter {

class Histogram {
  public:
    //! Bins on each side of zero. Bin i of a side holds values with i*width <= |x| < (i+1)*width.
    static constexpr int kBins = 4096;

    //! Counts values; all must be finite. Zeros are counted apart.
    void add(std::span<const float> values);
    void merge(const Histogram& other);

    int64_t count() const;  // of all values, zeros included
    int64_t zeros() const { return zeros_; }
    int exponent() const { return exponent_; }  // width() == 2^exponent()
    double width() const;
    //! Counts of negative (index 0 nearest zero) and positive values; empty when there are none.
    const std::vector<int64_t>& negative() const { return negative_; }
    const std::vector<int64_t>& positive() const { return positive_; }

    bool operator==(const Histogram&) const = default;

  private:
    void widen(int exponent);

    int exponent_ = -149;
    int64_t zeros_ = 0;
    std::vector<int64_t> negative_, positive_;
};

}  // namespace kilter
