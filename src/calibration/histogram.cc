#include "kilter/calibration/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "calibration/counter.h"

namespace kilter {

int Histogram::exponent_for(float magnitude) {
    if (magnitude == 0) return kLeastExponent;
    // 2^k <= magnitude < 2^(k+1) <= kBins * width
    constexpr int kSide = std::countr_zero(static_cast<unsigned>(kBins));
    return std::max(std::ilogb(magnitude) + 1 - kSide, kLeastExponent);
}

void Histogram::add(std::span<const float> values) {
    Counter counter;
    for (size_t start = 0; start < values.size(); start += kCounterTile) {
        const auto tile = values.subspan(start, std::min(values.size() - start, kCounterTile));
        float largest = 0;
        for (const float value : tile) {
            require(std::isfinite(value), "a histogram takes finite values, {} was given", value);
            largest = std::max(largest, std::fabs(value));
        }
        counter.cover(largest);
        counter.count(tile);
    }
    merge(counter.histogram());
}

void Histogram::merge(const Histogram& other) {
    widen(other.exponent_);
    zeros_ += other.zeros_;
    const int doublings = exponent_ - other.exponent_;
    const auto add_side = [&](std::vector<int64_t>& to, const std::vector<int64_t>& from) {
        if (from.empty()) return;
        to.resize(kBins);
        for (size_t i = 0; i < from.size(); ++i) to[i >> std::min(doublings, 31)] += from[i];
    };
    add_side(negative_, other.negative_);
    add_side(positive_, other.positive_);
}

// Bin i goes to bin i / 2^doublings. Exact: floor(floor(x / w) / 2) = floor(x / 2w).
void Histogram::widen(int exponent) {
    if (exponent <= exponent_) return;
    const int doublings = std::min(exponent - exponent_, 31);
    for (std::vector<int64_t>* side : {&negative_, &positive_}) {
        for (size_t i = 0; i < side->size(); ++i) {
            const int64_t count = std::exchange((*side)[i], 0);
            (*side)[i >> doublings] += count;
        }
    }
    exponent_ = exponent;
}

int64_t Histogram::count() const {
    const int64_t below = std::accumulate(negative_.begin(), negative_.end(), int64_t{0});
    return std::accumulate(positive_.begin(), positive_.end(), below + zeros_);
}

double Histogram::width() const { return std::ldexp(1.0, exponent_); }

Histogram Histogram::from_parts(int exponent, int64_t zeros, std::vector<int64_t> negative,
                                std::vector<int64_t> positive) {
    require(exponent >= kLeastExponent && exponent <= exponent_for(std::numeric_limits<float>::max()),
            "a histogram with bins of width 2^{}", exponent);
    require(zeros >= 0, "a histogram with a negative count");
    for (std::vector<int64_t>* side : {&negative, &positive}) {
        require(side->size() <= kBins, "a histogram with {} bins, {} are the most", side->size(), kBins);
        require(std::ranges::all_of(*side, [](int64_t count) { return count >= 0; }),
                "a histogram with a negative count");
        if (!side->empty()) side->resize(kBins);
    }
    Histogram histogram;
    histogram.exponent_ = exponent;
    histogram.zeros_ = zeros;
    histogram.negative_ = std::move(negative);
    histogram.positive_ = std::move(positive);
    return histogram;
}

}  // namespace kilter
