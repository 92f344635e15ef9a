// The strategy `auto`: few evaluations, the fewest operators in floating point.
#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "tuning/fake_backend.h"

namespace kilter::auto_test {

using testing::FakeBackend;
using testing::floats;
using testing::floats_of;
using testing::plan_of;
using testing::Ran;
using testing::two_way_space;
using Fallbacks = std::vector<std::vector<size_t>>;
using Why = SearchOver::Why;

std::vector<std::string> reasons(const Search& search) {
    std::vector<std::string> all;
    for (const Trial& trial : search.trials()) all.push_back(trial.reason);
    return all;
}

// With operators that could fall back in part: no candidate that loses at most 0.01 is cheaper.
double least_possible_cost(const std::vector<double>& losses, const std::vector<double>& gains) {
    std::vector<size_t> order(losses.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, std::greater<>(), [&](size_t index) { return losses[index] / gains[index]; });
    double loss = std::accumulate(losses.begin(), losses.end(), 0.0);
    double cost = 1 - std::accumulate(gains.begin(), gains.end(), 0.0);
    for (const size_t index : order) {
        const double share = std::clamp((loss - 0.01) / losses[index], 0.0, 1.0);
        loss -= share * losses[index];
        cost += share * gains[index];
    }
    return cost;
}

TEST(Auto, IsDoneWhenAllOnIntegersKeepsThePromise) {
    FakeBackend backend(two_way_space(8), std::vector<double>(8, 0.001));
    const Ran ran("auto", backend, 1000);
    EXPECT_EQ(ran.why, std::nullopt);
    EXPECT_EQ(ran.fallbacks(), Fallbacks{{}});
    EXPECT_TRUE(ran.search.best()->met);
    EXPECT_EQ(backend.scorings, 0);
    EXPECT_EQ(backend.errors, 0);
}

TEST(Auto, TakesBackWhatIsSlowerOnIntegers) {
    FakeBackend backend(two_way_space(4), std::vector<double>(4, 0.001));
    backend.gain = {0.2, -0.1, 0.2, -0.001};  // the last is noise
    const Ran ran("auto", backend);
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{}, {1}}));
    EXPECT_EQ(ran.search.best()->number, 2);
}

TEST(Auto, StopsAtTheFirstSuccessWhenTold) {
    FakeBackend backend(two_way_space(8), {0, 0.02, 0, 0.02, 0, 0, 0.02, 0});
    const Ran ran("auto", backend, 0.0);
    EXPECT_EQ(ran.why, Why::success);
    EXPECT_TRUE(ran.search.trials().back().met);
    EXPECT_EQ(std::ranges::count(ran.search.trials(), true, &Trial::met), 1);
}

TEST(Auto, FindsTheFewestOperatorsForWhateverIsNeeded) {
    // Any number of equally bad operators at any place: those and no others end in floating point.
    std::mt19937 random(1);
    for (size_t bad = 1; bad <= 16; ++bad) {
        std::vector<size_t> places(16);
        for (size_t i = 0; i < places.size(); ++i) places[i] = i;
        std::ranges::shuffle(places, random);
        places.resize(bad);
        std::ranges::sort(places);
        std::vector<double> losses(16, 0.0005);
        for (const size_t place : places) losses[place] = 0.02;
        FakeBackend backend(two_way_space(16), losses);
        const Ran ran("auto", backend);
        ASSERT_NE(ran.search.best(), nullptr) << bad;
        EXPECT_EQ(floats_of(backend.space(), ran.search.best()->candidate), places);
        EXPECT_EQ(ran.search.trials().front().candidate, backend.space().first());
    }
}

TEST(Auto, NeedsFewEvaluationsHoweverManyOperatorsThereAre) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> uniform(0, 1);
    for (int round = 0; round < 20; ++round) {
        std::vector<double> losses, gains;
        for (int i = 0; i < 64; ++i) {
            losses.push_back(0.004 * uniform(random) * uniform(random));
            gains.push_back(0.02 * uniform(random) * uniform(random));
        }
        FakeBackend backend(two_way_space(64), losses);
        backend.gain = gains;
        const Ran ran("auto", backend, 1e6);
        EXPECT_EQ(ran.why, std::nullopt);
        ASSERT_NE(ran.search.best(), nullptr);
        EXPECT_LE(backend.evaluated.size(), 20U) << round;
        EXPECT_EQ(backend.scorings, 1);
        // No worse than what nobody can beat, and one operator.
        EXPECT_LE(ran.search.best()->objective, least_possible_cost(losses, gains) + 0.02) << round;
    }
}

TEST(Auto, ReturnsFirstWhatSavesMostErrorForTheTimeItCosts) {
    // op2 loses less than op0 but costs next to nothing in floating point.
    FakeBackend backend(two_way_space(3), {0.012, 0.002, 0.0095});
    backend.gain = {0.3, 0.1, 0.05};
    const Ran ran("auto", backend, 0.0);
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{}, {2}, {0, 2}}));
}

TEST(Auto, FindsTheShortestPrefixByDoublingAndBisection) {
    FakeBackend backend(two_way_space(16), std::vector<double>(16, 0.002));
    backend.losses[0] = 0.0020001;
    // 0.032 in all, 0.01 allowed: eleven have to go. Equal ones go last first.
    const Ran ran("auto", backend);
    std::vector<size_t> counts;
    for (const auto& fallback : ran.fallbacks()) counts.push_back(fallback.size());
    const std::vector<size_t> expected{0, 1, 2, 4, 8, 16, 12, 10, 11};
    ASSERT_GE(counts.size(), expected.size());
    EXPECT_EQ(std::vector(counts.begin(), counts.begin() + 9), expected);
    EXPECT_EQ(floats_of(backend.space(), ran.search.best()->candidate).size(), 11U);
    // Then it tries to give some back, and gives up after three that are needed.
    EXPECT_EQ(counts.size(), 12U);
    EXPECT_EQ(counts.back(), 10U);
}

TEST(Auto, GivesBackWhatTurnsOutNotToBeNeeded) {
    // The calibration samples exaggerate what op0 and op1 do.
    FakeBackend backend(two_way_space(4), {0.0001, 0.0002, 0.05, 0.001});
    backend.gain = {0.2, 0.1, 0.1, 0.1};
    backend.error_on_calibration = [&](const Candidate& candidate) {
        const std::vector<double> errors{3, 2, 0.5, 0.1};
        double sum = 0;
        for (size_t i = 0; i < 4; ++i) sum += backend.space().is_quantized(candidate, i) ? errors[i] : 0;
        return sum;
    };
    const Ran ran("auto", backend);
    // {1, 0} by doubling to 4, back to 3 by bisection, then op0 (it gains more) and op1 return to integers.
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{}, {1}, {0, 1}, {0, 1, 2, 3}, {0, 1, 2}, {1, 2}, {2}}));
    EXPECT_EQ(ran.search.best()->number, 7);
    EXPECT_EQ(reasons(ran.search)[5], "op0 on integers again");
}

TEST(Auto, TriesOtherRangesOnlyWhenTheyLowerTheErrorOfTheOutputs) {
    for (const bool helps : {false, true}) {
        SpaceRule rule;
        rule.algorithms = {RangeAlgorithm::minmax, RangeAlgorithm::mse};
        FakeBackend backend(make_space(plan_of({"Conv", "MatMul"}), {rule}), {0.02, 0.02});
        backend.extra_loss = [&](const Candidate& candidate) {
            return helps && candidate.options == std::vector{1, 1} ? -0.035 : 0;
        };
        const Ran ran("auto", backend);
        EXPECT_GE(backend.errors, 2);
        EXPECT_EQ(ran.search.trials()[1].reason == "ranges by mse", helps);
        if (!helps) continue;
        EXPECT_EQ(ran.search.trials().size(), 2U);  // that was enough
        EXPECT_EQ(ran.search.best()->candidate.options, (std::vector{1, 1}));
    }
}

TEST(Auto, FallsBackFromTheBestAlternative) {
    SpaceRule rule;
    rule.algorithms = {RangeAlgorithm::minmax, RangeAlgorithm::mse};
    FakeBackend backend(make_space(plan_of({"Conv", "MatMul", "Conv"}), {rule}), {0.02, 0.03, 0.009});
    backend.extra_loss = [&](const Candidate& candidate) {
        return -0.006 * std::ranges::count(candidate.options, 1);
    };
    const Ran ran("auto", backend);
    // With mse 0.014 and 0.024 are lost; both have to go, the third stays with mse.
    EXPECT_EQ(ran.search.best()->candidate.options, (std::vector{2, 2, 1}));
}

TEST(Auto, TriesTheTwoMostPromisingAlternativesAndNoneTwice) {
    SpaceRule rule;
    rule.algorithms = {RangeAlgorithm::minmax, RangeAlgorithm::mse};
    Space space = make_space(plan_of({"Conv", "MatMul"}), {rule});
    space.variants = {{"", 0, {}}, {"equalization", 0, {}}, {"smooth-quant", 0, {}}};
    FakeBackend backend(std::move(space), {0.06, 0.06});
    backend.extra_loss = [&](const Candidate& candidate) {
        return std::vector{0.0, -0.04, -0.03}[static_cast<size_t>(candidate.variant)] -
               0.002 * std::ranges::count(candidate.options, 1);
    };
    const Ran ran("auto", backend);
    // Equalization with mse is best, equalization second; smooth-quant third.
    ASSERT_GE(ran.search.trials().size(), 3U);
    EXPECT_EQ(ran.search.trials()[1].candidate, (Candidate{{1, 1}, 1}));
    EXPECT_EQ(ran.search.trials()[2].candidate, (Candidate{{0, 0}, 1}));
    EXPECT_EQ(ran.search.trials()[3].candidate.variant, 1);

    // Where mse does not help, the second place belongs to the other variant.
    FakeBackend plain(backend.space(), {0.06, 0.06});
    plain.extra_loss = [&](const Candidate& candidate) {
        return std::vector{0.0, -0.04, -0.03}[static_cast<size_t>(candidate.variant)] +
               0.1 * std::ranges::count(candidate.options, 1);
    };
    const Ran other("auto", plain);
    EXPECT_EQ(other.search.trials()[1].candidate, (Candidate{{0, 0}, 1}));
    EXPECT_EQ(other.search.trials()[2].candidate, (Candidate{{0, 0}, 2}));
}

TEST(Auto, EndsWithTheNearestWhenNothingHelps) {
    FakeBackend backend(two_way_space(4), std::vector<double>(4, 0.001));
    backend.extra_loss = [](const Candidate&) { return 0.5; };
    const Ran ran("auto", backend);
    EXPECT_EQ(ran.why, std::nullopt);
    EXPECT_EQ(ran.search.best(), nullptr);
    EXPECT_EQ(ran.fallbacks().back().size(), 4U);
    EXPECT_EQ(floats_of(backend.space(), ran.search.best_or_nearest()->candidate).size(), 4U);
}

TEST(Auto, LeavesOperatorsThatOnlyMoveValuesToTheirNeighbours) {
    FakeBackend backend(two_way_space({"Conv", "MaxPool", "Relu", "Conv", "Add"}), {0.02, 0, 0, 0.02, 0.02});
    const Ran ran("auto", backend);
    for (const auto& fallback : ran.fallbacks())
        for (const size_t index : fallback) EXPECT_TRUE(index == 0 || index == 3 || index == 4) << index;
    EXPECT_EQ(floats_of(backend.space(), ran.search.best()->candidate), (std::vector<size_t>{0, 3, 4}));
}

TEST(Auto, WorksWithMetricsThatShouldBeLow) {
    FakeBackend backend(two_way_space(8), {0, 0.02, 0, 0.02, 0, 0, 0.02, 0});
    backend.higher_is_better = false;
    const Ran ran("auto", backend,
                  [](Search::Options& options) { options.criterion.higher_is_better = {false}; });
    EXPECT_EQ(floats_of(backend.space(), ran.search.best()->candidate), (std::vector<size_t>{1, 3, 6}));
}

TEST(Auto, HasNothingToDoInASpaceWithoutOperators) {
    FakeBackend backend(Space{{}, {{}}, Mode::smart, 1}, {});
    backend.extra_loss = [](const Candidate&) { return 0.5; };
    const Ran ran("auto", backend);
    EXPECT_EQ(ran.search.trials().size(), 1U);
}

}  // namespace kilter::auto_test
