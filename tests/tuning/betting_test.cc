#include "tuning/betting.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace kilter::betting_test {

// `worse`, `better` and the rest of 1000 paired results as numbers in [0, 1]: 1 worse, 0 better, 0.5 the same.
std::vector<double> results(int worse, int better, std::mt19937_64& random) {
    std::vector<double> values(1000, 0.5);
    std::fill_n(values.begin(), worse, 1.0);
    std::fill_n(values.begin() + worse, better, 0.0);
    std::ranges::shuffle(values, random);
    return values;
}

// How many of the numbers it looked at before it was sure; -1: never.
int decided_after(const std::vector<double>& values, double allowed_loss, double doubt) {
    Betting betting(static_cast<int64_t>(values.size()), (allowed_loss + 1) / 2, doubt);
    for (size_t i = 0; i < values.size(); ++i)
        if (betting.add(values[i])) return static_cast<int>(i) + 1;
    return -1;
}

TEST(Betting, RarelyRejectsWhatJustKeepsThePromise) {
    std::mt19937_64 random(1);
    // 60 got worse, 50 better: a loss of 0.010 with 0.010 allowed. One in twenty may be wrong; of 1000 tries that is 50.
    int wrong = 0;
    for (int i = 0; i < 1000; ++i) wrong += decided_after(results(60, 50, random), 0.010, 20) >= 0 ? 1 : 0;
    EXPECT_LE(wrong, 50);
}

TEST(Betting, RecognisesAWreckEarly) {
    std::mt19937_64 random(2);
    std::vector<int> seen;
    for (int i = 0; i < 50; ++i) seen.push_back(decided_after(results(550, 10, random), 0.01, 1000));
    EXPECT_GT(std::ranges::min(seen), 0);
    EXPECT_LT(std::ranges::max(seen), 100) << "of 1000 samples";
}

TEST(Betting, SmallLossesTakeLonger) {
    std::mt19937_64 random(3);
    int found = 0;
    for (int i = 0; i < 50; ++i) found += decided_after(results(100, 20, random), 0.01, 1000) > 0 ? 1 : 0;
    EXPECT_GT(found, 45) << "a loss of 8 points with one allowed";
}

TEST(Betting, IsCertainOnceTheRestCannotMakeUpForIt) {
    Betting betting(10, 0.2, 1e300);  // a mean of at most 0.2: a sum of 2
    EXPECT_FALSE(betting.add(1));
    EXPECT_FALSE(betting.add(1));
    EXPECT_FALSE(betting.add(0.5));  // 2.5 now; told when the next one is due
    EXPECT_TRUE(betting.add(0));
}

}  // namespace kilter::betting_test
