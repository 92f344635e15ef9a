#include <algorithm>
#include <array>
#include <cmath>

#include "base/fail.h"
#include "calibration/ranges.h"

namespace kilter {
namespace {

constexpr std::array<std::string_view, 4> kNames{"minmax", "kl", "percentile", "mse"};

}  // namespace

std::string_view name(RangeAlgorithm algorithm) { return kNames[static_cast<size_t>(algorithm)]; }

RangeAlgorithm range_algorithm(std::string_view name) {
    // MXNet's words.
    if (name == "naive") return RangeAlgorithm::minmax;
    if (name == "entropy") return RangeAlgorithm::kl;
    const auto found = std::ranges::find(kNames, name);
    require(found != kNames.end(), "'{}' is no range algorithm; there are minmax, kl, percentile and mse",
            name);
    return static_cast<RangeAlgorithm>(found - kNames.begin());
}

Range choose_range(const ValueStats& stats, const RangeOptions& options) {
    require(options.levels >= 2 && options.levels <= 65536, "{} levels; 2 to 65536 make sense",
            options.levels);
    require(options.percentile > 0 && options.percentile <= 100,
            "percentile {}; it must be above 0 and at most 100", options.percentile);
    if (stats.count == 0) return {};
    const float low = std::min(stats.min, 0.0F);
    const float high = std::max(stats.max, 0.0F);
    const float largest = std::max(-low, high);
    Range range{low, high};
    switch (options.algorithm) {
        case RangeAlgorithm::minmax:
            break;
        case RangeAlgorithm::kl: {
            const float threshold = kl_threshold(stats, options.levels);
            range = {-threshold, threshold};
            break;
        }
        case RangeAlgorithm::percentile:
            range = percentile_range(stats, options);
            break;
        case RangeAlgorithm::mse:
            range = mse_range(stats, options);
            break;
    }
    if (options.symmetric && low < 0) {
        const float magnitude = std::min(std::max(-range.min, range.max), largest);
        return {-magnitude, magnitude};
    }
    return {std::clamp(range.min, low, 0.0F), std::clamp(range.max, 0.0F, high)};
}

}  // namespace kilter
