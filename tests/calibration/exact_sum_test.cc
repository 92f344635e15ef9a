#include "kilter/calibration/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kilter::exact_sum_test {

TEST(ExactSum, DoesNotDependOnTheOrderOfTerms) {
    std::mt19937 random(1);
    std::uniform_int_distribution<int> exponent(-120, 120);
    std::vector<double> terms(5000);
    for (double& term : terms)
        term = std::ldexp(static_cast<double>(static_cast<int>(random() >> 8)) - (1 << 23), exponent(random));
    ExactSum first;
    for (const double term : terms) first.add(term);
    for (int round = 0; round < 5; ++round) {
        std::ranges::shuffle(terms, random);
        ExactSum left, right;
        for (size_t i = 0; i < terms.size(); ++i) (i % 3 == 0 ? left : right).add(terms[i]);
        right.add(left);
        EXPECT_EQ(right, first);
    }
}

TEST(ExactSum, LosesNothingToCancellation) {
    const double largest = std::numeric_limits<float>::max();
    const double smallest = std::numeric_limits<float>::denorm_min();
    ExactSum sum;
    for (const double term : {largest, smallest, -1.5, -largest, 1.0, -smallest, smallest}) sum.add(term);
    EXPECT_EQ(sum.value(), -0.5);
    sum.add(0.5);
    EXPECT_EQ(sum.value(), smallest);
    sum.add(-smallest);
    EXPECT_EQ(sum, ExactSum());
    EXPECT_EQ(sum.value(), 0.0);
}

TEST(ExactSum, RoundsOnceToNearest) {
    ExactSum sum;
    sum.add(1.0);
    sum.add(std::ldexp(1.0, -53));
    EXPECT_EQ(sum.value(), 1.0);  // halfway, to even
    sum.add(std::ldexp(1.0, -149));
    EXPECT_EQ(sum.value(), 1.0 + std::ldexp(1.0, -52));
    ExactSum negative;
    negative.add(-1.0);
    negative.add(-std::ldexp(1.0, -53));
    negative.add(-std::ldexp(1.0, -149));
    EXPECT_EQ(negative.value(), -1.0 - std::ldexp(1.0, -52));
}

TEST(ExactSum, CarriesThroughAllWords) {
    ExactSum sum;
    for (int i = 0; i < 1000; ++i) sum.add(static_cast<double>(std::numeric_limits<float>::max()) * 4096);
    EXPECT_DOUBLE_EQ(sum.value(), static_cast<double>(std::numeric_limits<float>::max()) * 4096 * 1000);
    for (int i = 0; i < 2000; ++i) sum.add(-static_cast<double>(std::numeric_limits<float>::max()) * 4096);
    EXPECT_DOUBLE_EQ(sum.value(), -static_cast<double>(std::numeric_limits<float>::max()) * 4096 * 1000);
}

}  // namespace kilter::exact_sum_test
