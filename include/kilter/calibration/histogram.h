// Histogram: counts of values over bins whose width is a power of two and doubles by merging pairs. The result does not
// depend on the order of the samples, and merging two histograms is exact.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kilter {

class Histogram {
  public:
    //! Bins on each side of zero. Bin i of a side holds values with i*width() <= |x| < (i+1)*width(). The width is the
    //! smallest that holds the largest value seen, so between half and all of the bins of one side are in use.
    static constexpr int kBins = 8192;
    //! The width never falls below 2^-126, the smallest normal number: scaling by it is exact for every float.
    static constexpr int kLeastExponent = -126;

    //! Counts values; all must be finite. Zeros (of either sign) are counted apart.
    void add(std::span<const float> values);
    void merge(const Histogram& other);

    int64_t count() const;  // of all values, zeros included
    int64_t zeros() const { return zeros_; }
    int exponent() const { return exponent_; }  // width() == 2^exponent()
    double width() const;
    //! Counts of negative (index 0 nearest zero) and positive values: kBins of them, or none when no such value was seen.
    const std::vector<int64_t>& negative() const { return negative_; }
    const std::vector<int64_t>& positive() const { return positive_; }

    //! A histogram from its parts, each side empty or at most kBins long; throws Error when they do not make one.
    static Histogram from_parts(int exponent, int64_t zeros, std::vector<int64_t> negative,
                                std::vector<int64_t> positive);

    //! The exponent of the width that a largest magnitude asks for.
    static int exponent_for(float magnitude);

    bool operator==(const Histogram&) const = default;

  private:
    friend class Counter;
    void widen(int exponent);

    int exponent_ = kLeastExponent;
    int64_t zeros_ = 0;
    std::vector<int64_t> negative_, positive_;
};

}  // namespace kilter
