// percentile: the range that keeps p percent of the values. Half of the rest is cut from each end, all of it from the far
// end when the range is symmetric or the values have one sign. Cuts fall on the outer edges of bins.
#include <cmath>

#include "calibration/ranges.h"

namespace kilter {
namespace {

// Outer edge of the bin in which a magnitude is reached that at most `cut` values of these exceed.
double edge(const std::vector<int64_t>& bins, double cut, double width) {
    int64_t beyond = 0;
    for (size_t i = bins.size(); i-- > 0;) {
        beyond += bins[i];
        if (static_cast<double>(beyond) > cut) return static_cast<double>(i + 1) * width;
    }
    return 0;
}

}  // namespace

Range percentile_range(const ValueStats& stats, const RangeOptions& options) {
    const Histogram& histogram = stats.histogram;
    const double width = histogram.width();
    const double cut =
        static_cast<double>(histogram.count()) * (100 - options.percentile) / 100 * (1 + 1e-12);
    const bool two_sided = !histogram.negative().empty() && !histogram.positive().empty();
    if (two_sided && options.symmetric) {
        std::vector<int64_t> both = histogram.positive();
        for (size_t i = 0; i < both.size(); ++i) both[i] += histogram.negative()[i];
        const auto threshold = static_cast<float>(edge(both, cut, width));
        return {-threshold, threshold};
    }
    const double each = two_sided ? cut / 2 : cut;
    return {static_cast<float>(-edge(histogram.negative(), each, width)),
            static_cast<float>(edge(histogram.positive(), each, width))};
}

}  // namespace kilter
