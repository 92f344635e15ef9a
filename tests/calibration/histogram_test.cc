#include "kilter/calibration/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kilter/base/error.h"

namespace kilter::histogram_test {

std::vector<float> values_of_many_sizes(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::uniform_int_distribution<int> exponent(-40, 30);
    std::vector<float> values(count);
    for (float& value : values)
        value = random() % 7 == 0 ? 0.0F : std::ldexp(normal(random), exponent(random));
    return values;
}

// What the histogram says it holds, value by value.
Histogram counted_plainly(const std::vector<float>& values) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::fabs(value));
    const int exponent = Histogram::exponent_for(largest);
    std::vector<int64_t> negative, positive;
    int64_t zeros = 0;
    for (const float value : values) {
        if (value == 0) {
            ++zeros;
            continue;
        }
        std::vector<int64_t>& side = value < 0 ? negative : positive;
        side.resize(Histogram::kBins);
        ++side[static_cast<size_t>(std::ldexp(std::fabs(static_cast<double>(value)), -exponent))];
    }
    return Histogram::from_parts(exponent, zeros, negative, positive);
}

TEST(Histogram, CountsEveryValueInItsBin) {
    for (const size_t count : {0, 1, 3, 15, 16, 17, 4095, 4096, 4097, 20000}) {
        const std::vector<float> values = values_of_many_sizes(count, 1);
        Histogram histogram;
        histogram.add(values);
        EXPECT_EQ(histogram, counted_plainly(values)) << count;
        EXPECT_EQ(histogram.count(), static_cast<int64_t>(count));
    }
}

TEST(Histogram, DoesNotDependOnTheOrderOfValues) {
    std::vector<float> values = values_of_many_sizes(10000, 2);
    Histogram first;
    first.add(values);
    std::mt19937 random(3);
    for (int round = 0; round < 5; ++round) {
        std::ranges::shuffle(values, random);
        Histogram other;
        for (size_t start = 0; start < values.size(); start += 777)
            other.add(std::span(values).subspan(start, std::min<size_t>(777, values.size() - start)));
        EXPECT_EQ(other, first);
    }
}

TEST(Histogram, GrowsByMergingPairs) {
    std::vector<float> small(1000);
    for (size_t i = 0; i < small.size(); ++i) small[i] = static_cast<float>(i) / 1000.0F - 0.5F;
    Histogram histogram;
    histogram.add(small);
    const int before = histogram.exponent();
    histogram.add(std::vector<float>{3.9F});
    EXPECT_EQ(histogram.exponent(), before + 2);
    small.push_back(3.9F);
    EXPECT_EQ(histogram, counted_plainly(small));
}

TEST(Histogram, MergesExactlyInAnyOrder) {
    const std::vector<float> values = values_of_many_sizes(9000, 4);
    Histogram whole;
    whole.add(values);
    std::vector<Histogram> parts(9);
    for (size_t i = 0; i < parts.size(); ++i) parts[i].add(std::span(values).subspan(i * 1000, 1000));
    Histogram forward, backward;
    for (const Histogram& part : parts) forward.merge(part);
    std::ranges::reverse(parts);
    for (const Histogram& part : parts) backward.merge(part);
    EXPECT_EQ(forward, whole);
    EXPECT_EQ(backward, whole);
}

TEST(Histogram, HoldsTheSmallestAndTheLargestNumbers) {
    const std::vector<float> values{std::numeric_limits<float>::denorm_min(),
                                    -std::numeric_limits<float>::denorm_min(),
                                    std::numeric_limits<float>::min(),
                                    -0.0F,
                                    0.0F,
                                    std::numeric_limits<float>::max(),
                                    std::numeric_limits<float>::lowest()};
    Histogram histogram;
    histogram.add(values);
    EXPECT_EQ(histogram, counted_plainly(values));
    EXPECT_EQ(histogram.zeros(), 2);
    EXPECT_EQ(histogram.positive().back(), 1);
    Histogram tiny;
    tiny.add(std::span(values).first(3));
    EXPECT_EQ(tiny, counted_plainly({values.begin(), values.begin() + 3}));
}

TEST(Histogram, RefusesWhatIsNotFinite) {
    Histogram histogram;
    EXPECT_THROW(histogram.add(std::vector<float>{1, std::numeric_limits<float>::infinity()}), Error);
    EXPECT_THROW(histogram.add(std::vector<float>{std::nanf("")}), Error);
}

}  // namespace kilter::histogram_test
