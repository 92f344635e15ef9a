#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "calibration/ranges.h"
#include "kilter/base/error.h"
#include "kilter/calibration/entropy.h"

namespace kilter::range_test {

ValueStats stats_of(const std::vector<float>& values) {
    ValueStats stats;
    stats.count = static_cast<int64_t>(values.size());
    stats.min = *std::ranges::min_element(values);
    stats.max = *std::ranges::max_element(values);
    stats.sums.resize(1);
    for (const float value : values) stats.sums[0].add(static_cast<double>(value));
    stats.update_means();
    stats.histogram.add(values);
    return stats;
}

std::vector<float> bell(size_t count, unsigned seed, float spread = 1, float middle = 0) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(middle, spread);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
}

std::vector<float> rectified(std::vector<float> values) {
    for (float& value : values) value = std::max(value, 0.0F);
    return values;
}

Range range(const ValueStats& stats, RangeAlgorithm algorithm, bool symmetric = false) {
    return choose_range(stats, {.algorithm = algorithm, .symmetric = symmetric});
}

constexpr RangeAlgorithm kAll[] = {RangeAlgorithm::minmax, RangeAlgorithm::kl, RangeAlgorithm::percentile,
                                   RangeAlgorithm::mse};

// The definition, word for word: bins, slices, merged and spread, smoothed, compared.
float threshold_by_definition(const ValueStats& stats, int levels) {
    const Histogram& histogram = stats.histogram;
    const float largest = std::max(-stats.min, stats.max);
    const auto used = static_cast<int>(static_cast<double>(largest) / histogram.width());
    const int zero = (used + 1) / 2;
    std::vector<double> hist(static_cast<size_t>(2 * zero + 1));
    hist[static_cast<size_t>(zero)] = static_cast<double>(histogram.zeros());
    for (int i = 0; i < Histogram::kBins; ++i) {
        const int distance = (i + 1) / 2;
        const auto at = static_cast<size_t>(i);
        if (!histogram.positive().empty() && histogram.positive()[at] > 0)
            hist[static_cast<size_t>(zero + distance)] += static_cast<double>(histogram.positive()[at]);
        if (!histogram.negative().empty() && histogram.negative()[at] > 0)
            hist[static_cast<size_t>(zero - distance)] += static_cast<double>(histogram.negative()[at]);
    }
    const int quantized = stats.min >= 0 ? 2 * levels - 1 : levels - 1;
    const auto smooth = [](std::vector<double> values) {
        const auto zeros = static_cast<double>(std::ranges::count(values, 0.0));
        const double others = static_cast<double>(values.size()) - zeros;
        if (others == 0 || 1e-4 * zeros / others >= 1) return std::vector<double>();
        for (double& value : values) value = value == 0 ? 1e-4 : value - 1e-4 * zeros / others;
        return values;
    };
    double least = std::numeric_limits<double>::infinity();
    float threshold = 0;
    for (int i = quantized / 2; i <= zero; ++i) {
        const int start = zero - i;
        const int stop = zero + i + 1;
        std::vector<double> p(static_cast<size_t>(stop - start));
        std::vector<double> sliced(p.size());
        for (int j = 0; j < static_cast<int>(hist.size()); ++j) {
            const double count = hist[static_cast<size_t>(j)];
            if (j <= start)
                p.front() += count;
            else if (j >= stop)
                p.back() += count;
            else
                p[static_cast<size_t>(j - start)] += count, sliced[static_cast<size_t>(j - start)] = count;
        }
        const size_t merged = sliced.size() / static_cast<size_t>(quantized);
        std::vector<double> q(p.size());
        for (int j = 0; j < quantized; ++j) {
            const size_t first = static_cast<size_t>(j) * merged;
            const size_t last = j == quantized - 1 ? q.size() : first + merged;
            double sum = 0;
            int filled = 0;
            for (size_t k = first; k < last; ++k) sum += sliced[k], filled += sliced[k] != 0 ? 1 : 0;
            for (size_t k = first; k < last && filled > 0; ++k)
                if (p[k] != 0) q[k] = sum / filled;
        }
        p = smooth(p);
        q = smooth(q);
        if (q.empty()) continue;
        double p_sum = 0, q_sum = 0, divergence = 0;
        for (size_t k = 0; k < p.size(); ++k) p_sum += p[k], q_sum += q[k];
        for (size_t k = 0; k < p.size(); ++k)
            divergence += p[k] / p_sum * std::log((p[k] / p_sum) / (q[k] / q_sum));
        if (divergence < least) {
            least = divergence;
            threshold = static_cast<float>((2 * i + 1) * histogram.width());
        }
    }
    return threshold;
}

TEST(KlRange, IsWhatTheDefinitionGives) {
    std::vector<std::vector<float>> cases{bell(20000, 1), rectified(bell(20000, 2)), bell(300, 3)};
    std::vector<float> heavy = bell(20000, 4);
    for (float& value : heavy) value = value * value * value;
    cases.push_back(heavy);
    cases.push_back(rectified(heavy));
    std::vector<float> uneven = bell(5000, 5, 1, 3);
    uneven.push_back(-20);
    cases.push_back(uneven);
    for (const std::vector<float>& values : cases)
        for (const int levels : {128, 256}) {
            if (levels == 128 && &values != &cases.back()) continue;
            const ValueStats stats = stats_of(values);
            EXPECT_EQ(kl_threshold(stats, levels), threshold_by_definition(stats, levels)) << levels;
        }
}

TEST(EntropyThreshold, FollowsTheWidthOfBins) {
    std::vector<double> bins(4001, 0.0);
    for (int i = -2000; i <= 2000; ++i)
        bins[static_cast<size_t>(2000 + i)] = std::floor(1e6 * std::exp(-std::abs(i) / 80.0));
    bins.front() = bins.back() = 1;  // one value far out on each side
    const float threshold = entropy_threshold(bins, 0.5, false);
    EXPECT_GE(threshold, 63.0F);
    EXPECT_LT(threshold, 900.0F);
    EXPECT_FLOAT_EQ(entropy_threshold(bins, 1.0, false), 2 * threshold);
    // Fewer bins than levels leave nothing to choose.
    EXPECT_FLOAT_EQ(entropy_threshold(std::vector<double>(101, 1.0), 1.0, true), 50.5F);
    EXPECT_THROW(entropy_threshold(std::vector<double>(100, 1.0), 1.0, false), Error);
}

TEST(KlRange, CutsAThinTail) {
    std::vector<float> values = bell(100000, 6);
    values.push_back(40);
    const Range chosen = range(stats_of(values), RangeAlgorithm::kl);
    EXPECT_LT(chosen.max, 10);
    EXPECT_GT(chosen.max, 2);
}

TEST(PercentileRange, KeepsThatShareOfTheValues) {
    const std::vector<float> values = bell(100000, 7, 2, 0.5F);
    const ValueStats stats = stats_of(values);
    const auto share = [&](const Range& chosen) {
        const auto kept = std::ranges::count_if(
            values, [&](float value) { return value >= chosen.min && value <= chosen.max; });
        return 100.0 * static_cast<double>(kept) / static_cast<double>(values.size());
    };
    for (const double percentile : {50.0, 90.0, 99.0, 99.9, 99.99})
        for (const bool symmetric : {false, true}) {
            const Range chosen = choose_range(
                stats,
                {.algorithm = RangeAlgorithm::percentile, .percentile = percentile, .symmetric = symmetric});
            EXPECT_GE(share(chosen), percentile);
            EXPECT_LT(share(chosen), percentile + 0.3);
        }
    EXPECT_EQ(choose_range(stats, {.algorithm = RangeAlgorithm::percentile, .percentile = 100}),
              range(stats, RangeAlgorithm::minmax));
}

TEST(MseRange, IsNoWorseThanMinMaxAndAnyPlainThreshold) {
    std::vector<float> heavy = bell(20000, 8);
    for (float& value : heavy) value = value * value * value;
    const ValueStats stats = stats_of(heavy);
    const auto loss = [&](const Range& chosen) {
        const double step = (static_cast<double>(chosen.max) - chosen.min) / 255;
        const double least = std::nearbyint(chosen.min / step);
        double sum = 0;
        for (const float value : heavy) {
            const double level = std::clamp(std::nearbyint(value / step), least, least + 255);
            sum += (value - level * step) * (value - level * step);
        }
        return sum;
    };
    const double found = loss(range(stats, RangeAlgorithm::mse));
    for (float part = 0.05F; part <= 1; part += 0.05F)
        EXPECT_LE(found, 1.02 * loss({stats.min * part, stats.max * part})) << part;
}

TEST(Ranges, OneHugeOutlierDoesNotSpoilTheRest) {
    std::vector<float> values = bell(200000, 9);
    values.push_back(10000);
    const ValueStats stats = stats_of(values);
    EXPECT_EQ(range(stats, RangeAlgorithm::minmax).max, 10000);
    EXPECT_LT(range(stats, RangeAlgorithm::percentile).max, 20);
    EXPECT_LT(range(stats, RangeAlgorithm::kl).max, 2000);  // no threshold below 127 bins is ever tried
}

TEST(Ranges, ContainZeroAndNothingThatWasNotSeen) {
    const std::vector<std::vector<float>> cases{
        bell(1000, 10, 0.1F, 5), bell(1000, 11, 0.1F, -5), {3}, {-0.25F}, bell(1000, 12), {0, 1e-30F}};
    for (const std::vector<float>& values : cases)
        for (const RangeAlgorithm algorithm : kAll)
            for (const bool symmetric : {false, true}) {
                const ValueStats stats = stats_of(values);
                const Range chosen = range(stats, algorithm, symmetric);
                EXPECT_LE(chosen.min, 0);
                EXPECT_GE(chosen.max, 0);
                EXPECT_LT(chosen.min, chosen.max);
                const float low = std::min(stats.min, 0.0F);
                const float high = std::max(stats.max, 0.0F);
                if (symmetric && stats.min < 0) {
                    EXPECT_EQ(chosen.min, -chosen.max);
                    EXPECT_LE(chosen.max, std::max(-low, high));
                } else {
                    EXPECT_GE(chosen.min, low);
                    EXPECT_LE(chosen.max, high);
                }
            }
}

TEST(Ranges, ConstantAndOneElementTensorsGetTheirValue) {
    for (const size_t count : {1, 5000})
        for (const RangeAlgorithm algorithm : kAll) {
            EXPECT_EQ(range(stats_of(std::vector<float>(count, 2.5F)), algorithm), (Range{0, 2.5F}));
            EXPECT_EQ(range(stats_of(std::vector<float>(count, -2.5F)), algorithm), (Range{-2.5F, 0}));
        }
}

TEST(Ranges, AllZeroTensorsGetAnEmptyRange) {
    for (const RangeAlgorithm algorithm : kAll)
        for (const bool symmetric : {false, true})
            EXPECT_EQ(range(stats_of(std::vector<float>(100, 0.0F)), algorithm, symmetric), (Range{0, 0}));
    EXPECT_EQ(choose_range({}, {}), (Range{0, 0}));
}

TEST(Ranges, AreNamed) {
    for (const RangeAlgorithm algorithm : kAll) EXPECT_EQ(range_algorithm(name(algorithm)), algorithm);
    EXPECT_EQ(range_algorithm("entropy"), RangeAlgorithm::kl);  // as MXNet calls it
    EXPECT_THROW(range_algorithm("guess"), Error);
    EXPECT_THROW(choose_range({}, {.levels = 1}), Error);
    EXPECT_THROW(choose_range({}, {.percentile = 0}), Error);
}

}  // namespace kilter::range_test
