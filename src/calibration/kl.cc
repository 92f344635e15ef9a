// kl: the threshold of MXNet's entropy mode (docs/calibration.md, "kl"). Same definition, evaluated with running sums:
// only bins that are not empty cost anything, and logarithms of counts are taken once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/fail.h"
#include "calibration/ranges.h"
#include "kilter/calibration/entropy.h"

namespace kilter {
namespace {

constexpr double kEpsilon = 1e-4;

// Bins of equal width, an odd number, the middle one around zero. Ours begin at zero: pairs of them, shifted by one, fit.
std::vector<double> centred_bins(const Histogram& histogram, float largest) {
    const auto used = static_cast<int64_t>(static_cast<double>(largest) / histogram.width());
    const auto half = (used + 1) / 2;
    std::vector<double> bins(static_cast<size_t>(2 * half + 1));
    const auto at = [&](int64_t bin) -> double& { return bins[static_cast<size_t>(half + bin)]; };
    at(0) += static_cast<double>(histogram.zeros());
    for (int64_t i = 0; i <= used; ++i) {
        const auto index = static_cast<size_t>(i);
        if (!histogram.negative().empty())
            at(-((i + 1) / 2)) += static_cast<double>(histogram.negative()[index]);
        if (!histogram.positive().empty())
            at((i + 1) / 2) += static_cast<double>(histogram.positive()[index]);
    }
    return bins;
}

// x log x of a count less a little, given log(count).
double term(double count, double log_count, double less) {
    const double left = count - less;
    const double ratio = less / count;
    const double log_left =
        ratio < 1e-3 ? log_count - ratio * (1 + ratio * (0.5 + ratio / 3)) : std::log(left);
    return left * log_left;
}

class Divergence {
  public:
    Divergence(const std::vector<double>& bins, int64_t levels)
        : bins_(bins), logs_(bins.size()), sums_(bins.size() + 1), filled_(bins.size() + 1), levels_(levels) {
        for (size_t i = 0; i < bins.size(); ++i) {
            logs_[i] = bins[i] > 0 ? std::log(bins[i]) : 0;
            sums_[i + 1] = sums_[i] + bins[i];
            filled_[i + 1] = filled_[i] + (bins[i] > 0 ? 1 : 0);
        }
    }

    //! KL(P || Q) when values beyond `half` bins from the middle are clipped; infinite when Q cannot be smoothed.
    double operator()(int64_t half) const {
        const auto middle = static_cast<int64_t>(bins_.size() / 2);
        const int64_t start = middle - half;
        const int64_t size = 2 * half + 1;
        const int64_t stop = start + size;
        // P: the bins, with what is clipped added to the outermost two. Q is made from the bins without the first.
        const double first = sums_[static_cast<size_t>(start + 1)];
        const double clipped = sums_.back() - sums_[static_cast<size_t>(stop)];
        const double last = bins_[static_cast<size_t>(stop - 1)] + clipped;
        const auto count = [&](int64_t from,
                               int64_t to) {  // of filled bins in P's numbering, without the first
            return filled_[static_cast<size_t>(start + to)] -
                   filled_[static_cast<size_t>(start + std::max<int64_t>(from, 1))];
        };
        const auto sum = [&](int64_t from, int64_t to) {
            return sums_[static_cast<size_t>(start + to)] -
                   sums_[static_cast<size_t>(start + std::max<int64_t>(from, 1))];
        };
        const bool last_is_new = last > 0 && bins_[static_cast<size_t>(stop - 1)] == 0;
        const int64_t p_filled = count(1, size) + (first > 0 ? 1 : 0) + (last_is_new ? 1 : 0);
        const double p_less = smoothing(size, p_filled);

        // Q's groups. Every bin that P fills gets an equal share of its group, counted over the bins Q was made from.
        const int64_t merged = size / levels_;
        int64_t q_filled = 0;
        double q_sum = 0;
        const auto group = [&](int64_t number, const auto& visit) {
            const int64_t from = number * merged;
            const int64_t to = number == levels_ - 1 ? size : from + merged;
            const int64_t shares = count(from, to);
            if (shares == 0) return;
            const int64_t receivers =
                shares + (from == 0 && first > 0 ? 1 : 0) + (to == size && last_is_new ? 1 : 0);
            visit(from, to, sum(from, to) / static_cast<double>(shares), receivers);
        };
        for (int64_t number = 0; number < levels_; ++number)
            group(number, [&](int64_t, int64_t, double share, int64_t receivers) {
                q_filled += receivers;
                q_sum += share * static_cast<double>(receivers);
            });
        const double q_less = smoothing(size, q_filled);
        if (p_less >= 1 || q_less >= 1) return std::numeric_limits<double>::infinity();
        // Smoothing moves mass from filled to empty bins: the sums stay.
        const double p_sum = sums_.back();

        // Σ p log p over filled bins, then Σ p log q group by group; empty bins hold epsilon in both.
        double entropy = 0;
        double cross = 0;
        const double log_epsilon = std::log(kEpsilon);
        int64_t unseen = p_filled;  // filled in P, empty in Q
        double unseen_mass = p_sum - p_less * static_cast<double>(p_filled);
        const auto part = [&](double value, double logarithm) { entropy += term(value, logarithm, p_less); };
        if (first > 0) part(first, std::log(first));
        for (int64_t i = start + 1; i < stop - 1; ++i)
            if (bins_[static_cast<size_t>(i)] > 0)
                part(bins_[static_cast<size_t>(i)], logs_[static_cast<size_t>(i)]);
        if (last > 0) part(last, std::log(last));
        bool positive = true;
        for (int64_t number = 0; number < levels_; ++number)
            group(number, [&](int64_t from, int64_t to, double share, int64_t receivers) {
                double mass = sum(from, to) - p_less * static_cast<double>(receivers);
                if (from == 0) mass += first;
                if (to == size) mass += clipped;
                positive = positive && share > q_less;
                cross += mass * std::log(share - q_less);
                unseen -= receivers;
                unseen_mass -= mass;
            });
        if (!positive) return std::numeric_limits<double>::infinity();
        if (unseen > 0) cross += unseen_mass * log_epsilon;
        // Σ (p/P) log((p/P) / (q/Q)); what is empty in both adds epsilon/P log(Q/P), which the last term holds.
        return (entropy - cross) / p_sum + std::log(q_sum / p_sum);
    }

  private:
    static double smoothing(int64_t size, int64_t filled) {
        if (filled == 0) return 1;
        return kEpsilon * static_cast<double>(size - filled) / static_cast<double>(filled);
    }

    const std::vector<double>& bins_;
    std::vector<double> logs_;
    std::vector<double> sums_;     // of all bins before
    std::vector<int64_t> filled_;  // bins before that are not empty
    int64_t levels_;
};

// How many bins from the middle to clip at; nothing when no threshold has a divergence.
std::optional<int64_t> best_half(const std::vector<double>& bins, int64_t grid) {
    const auto half = static_cast<int64_t>(bins.size() / 2);
    if (half <= grid / 2) return std::nullopt;
    const Divergence divergence(bins, grid);
    std::vector<double> found(static_cast<size_t>(half - grid / 2 + 1));
#pragma omp parallel for schedule(dynamic, 64)
    for (size_t i = 0; i < found.size(); ++i) found[i] = divergence(grid / 2 + static_cast<int64_t>(i));
    const auto best = std::ranges::min_element(found) - found.begin();
    // The definition never puts the lowest bin into Q: with everything there, no threshold has a divergence.
    if (std::isinf(found[static_cast<size_t>(best)])) return std::nullopt;
    return grid / 2 + best;
}

// 255 levels from -127 to 127. What is never negative uses one half of a grid twice as fine.
int64_t grid_of(int64_t levels, bool never_negative) { return never_negative ? 2 * levels - 1 : levels - 1; }

}  // namespace

float kl_threshold(const ValueStats& stats, int levels) {
    const float largest = std::max(-stats.min, stats.max);
    if (!(largest > 0)) return 0;
    const std::vector<double> bins = centred_bins(stats.histogram, largest);
    const auto best = best_half(bins, grid_of(levels, stats.min >= 0));
    // Bins are pairs of the histogram's, and the middle one reaches one of those to each side.
    return best ? static_cast<float>(static_cast<double>(2 * *best + 1) * stats.histogram.width()) : largest;
}

float entropy_threshold(const std::vector<double>& bins, double width, bool never_negative) {
    require(bins.size() % 2 == 1, "a histogram of {} bins; expected an odd number", bins.size());
    const auto half = static_cast<int64_t>(bins.size() / 2);
    const auto best = best_half(bins, grid_of(256, never_negative));
    return static_cast<float>((static_cast<double>(best.value_or(half)) + 0.5) * width);
}

}  // namespace kilter
