#include "tuning/betting.h"

#include <algorithm>
#include <cmath>

namespace kilter {

bool Betting::add(double value) {
    if (exceeded_) return true;
    // Mean of what is left, were the mean of all at the limit.
    const double left = (static_cast<double>(count_) * limit_ - sum_) / static_cast<double>(count_ - seen_);
    if (left < 0) return exceeded_ = true;  // even zeros from here on would not bring it back
    // The stake that makes the capital grow fastest, were the rest like what was seen; it may never lose everything.
    const auto seen = static_cast<double>(seen_);
    const double mean = (0.5 + sum_) / (1 + seen);
    const double variance = (0.25 + squares_ - 2 * mean * sum_ + seen * mean * mean) / (1 + seen);
    const double edge = mean - left;
    const double most = left > 0 ? 0.75 / left : 1e6;
    const double stake = std::clamp(edge / std::max(variance + edge * edge, 1e-9), 0.0, most);
    log_capital_ += std::log(std::max(1 + stake * (value - left), 1e-12));
    sum_ += value;
    squares_ += value * value;
    ++seen_;
    if (log_capital_ > std::log(doubt_)) exceeded_ = true;
    return exceeded_;
}

}  // namespace kilter
