// mse: the range whose quantization grid gives the least expected squared error, clipping and rounding together.
// Every bin counts with its middle; the grid is the one quantization really uses, with zero on it.
#include <algorithm>
#include <cmath>

#include "calibration/ranges.h"

namespace kilter {
namespace {

// How finely thresholds are tried: first in steps of 1/64 of the largest value, then around the best of them.
constexpr int kSteps = 64;

struct Bin {
    double middle, count;
};

std::vector<Bin> bins_of(const Histogram& histogram) {
    std::vector<Bin> bins;
    const double width = histogram.width();
    const auto add = [&](const std::vector<int64_t>& side, double sign) {
        for (size_t i = 0; i < side.size(); ++i)
            if (side[i] != 0)
                bins.push_back({sign * (static_cast<double>(i) + 0.5) * width, static_cast<double>(side[i])});
    };
    add(histogram.negative(), -1);
    add(histogram.positive(), 1);
    return bins;
}

double error(const std::vector<Bin>& bins, double low, double high, int levels) {
    const double step = (high - low) / (levels - 1);
    if (!(step > 0)) {
        double sum = 0;
        for (const Bin& bin : bins) sum += bin.count * bin.middle * bin.middle;
        return sum;
    }
    const double least = std::nearbyint(low / step);
    const double most = least + levels - 1;
    double sum = 0;
    for (const Bin& bin : bins) {
        const double level = std::clamp(std::nearbyint(bin.middle / step), least, most);
        const double difference = bin.middle - level * step;
        sum += bin.count * difference * difference;
    }
    return sum;
}

// The fraction of `largest` in (0, 1] for which `loss` is least; the larger of equals.
template <class Loss>
double best_fraction(const Loss& loss) {
    double best = 1;
    double least = loss(1.0);
    const auto attempt = [&](double fraction) {
        if (fraction <= 0 || fraction >= 1) return;
        const double found = loss(fraction);
        if (found < least) {
            least = found;
            best = fraction;
        }
    };
    for (int i = kSteps - 1; i > 0; --i) attempt(static_cast<double>(i) / kSteps);
    // One huge outlier leaves everything else in the first step: look there in powers of two.
    for (double fraction = 0.5 / kSteps; fraction > 1e-4; fraction /= 2) attempt(fraction);
    const double centre = best;
    const double around = std::min(centre, 1.0 / kSteps);
    for (int i = kSteps / 4; i > -kSteps / 4; --i)
        attempt(centre + around * static_cast<double>(i) / (kSteps / 4.0));
    return best;
}

}  // namespace

Range mse_range(const ValueStats& stats, const RangeOptions& options) {
    const std::vector<Bin> bins = bins_of(stats.histogram);
    double low = std::min(stats.min, 0.0F);
    double high = std::max(stats.max, 0.0F);
    if (options.symmetric && low < 0) {
        const double largest = std::max(-low, high);
        // Symmetric integers leave out the lowest level: -127 … 127.
        const double fraction = best_fraction(
            [&](double part) { return error(bins, -largest * part, largest * part, options.levels - 1); });
        return {static_cast<float>(-largest * fraction), static_cast<float>(largest * fraction)};
    }
    const double both =
        best_fraction([&](double part) { return error(bins, low * part, high * part, options.levels); });
    const double whole_low = low;
    const double whole_high = high;
    low *= both;
    high *= both;
    for (int round = 0; round < 2 && whole_low < 0 && whole_high > 0; ++round) {
        high = whole_high * best_fraction([&](double part) {
                   return error(bins, low, whole_high * part, options.levels);
               });
        low = whole_low *
              best_fraction([&](double part) { return error(bins, whole_low * part, high, options.levels); });
    }
    return {static_cast<float>(low), static_cast<float>(high)};
}

}  // namespace kilter
