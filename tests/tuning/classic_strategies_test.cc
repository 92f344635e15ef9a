// The strategies of Intel's tools: the order of their trials, and that their known defects are not ours.
#include <algorithm>

#include <gtest/gtest.h>

#include "tuning/fake_backend.h"

namespace kilter::classic_strategies_test {

using testing::FakeBackend;
using testing::floats_of;
using testing::plan_of;
using testing::Ran;
using testing::two_way_space;
using Fallbacks = std::vector<std::vector<size_t>>;
using Why = SearchOver::Why;

TEST(Basic, TriesModelWiseThenEachAloneLastFirstThenTheGoodOnesTogether) {
    // op1 helps most, then op3; op0 and op2 make it worse when they fall back.
    FakeBackend backend(two_way_space(4), {-0.001, 0.03, -0.002, 0.02});
    backend.extra_loss = [](const Candidate&) { return 0.1; };  // out of reach: everything is tried
    const Ran ran("basic", backend);
    EXPECT_EQ(ran.why, std::nullopt);
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{},  // model-wise
                                          {3},
                                          {2},
                                          {1},
                                          {0},  // one at a time
                                          {1, 3},
                                          {0, 1, 3},
                                          {1, 2, 3},        // {1}, then what improves
                                          {0, 1, 2, 3}}));  // all: {1}, {1, 3} and {0, 1, 3} are known
}

TEST(Basic, AccumulatesAllInTheSecondPassWhateverTheyDo) {
    FakeBackend backend(two_way_space(3), {-0.001, 0.02, -0.002});
    backend.extra_loss = [](const Candidate&) { return 0.1; };
    const Ran ran("basic", backend);
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{}, {2}, {1}, {0}, {0, 1}, {1, 2}, {0, 1, 2}}));
}

TEST(Basic, StopsAtTheFirstSuccess) {
    FakeBackend backend(two_way_space(4), {0.001, 0.03, 0.001, 0.02});
    const Ran ran("basic", backend);
    EXPECT_EQ(ran.why, Why::success);
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{}, {3}, {2}, {1}, {0}, {1, 3}}));
    EXPECT_EQ(ran.search.best()->number, 6);
    const Ran budget("basic", backend, 1e6);
    EXPECT_EQ(budget.why, std::nullopt);
    EXPECT_GT(budget.search.trials().size(), 6U);
}

TEST(Basic, StartsFromTheMostAccurateModelWiseCandidateOfEqualOnesTheLater) {
    SpaceRule rule;
    rule.algorithms = {RangeAlgorithm::minmax, RangeAlgorithm::kl, RangeAlgorithm::mse};
    FakeBackend backend(make_space(plan_of({"Conv", "Conv"}), {rule}), {0.1, 0.1});
    backend.extra_loss = [](const Candidate& candidate) { return candidate.options[0] == 0 ? 0.01 : 0; };
    const Ran ran("basic", backend);
    ASSERT_GE(ran.search.trials().size(), 4U);
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(ran.search.trials()[static_cast<size_t>(i)].candidate.options, (std::vector{i, i}));
    EXPECT_EQ(ran.search.trials()[3].candidate.options, (std::vector{2, 3}));  // mse, op1 in f32
}

TEST(Basic, TriesEveryVariantThatWasAskedFor) {
    Space space = two_way_space(2);
    space.variants = {{"", 100, {}}, {"", 200, {}}, {"equalization", 100, {}}};
    space.asked_variants = 2;
    FakeBackend backend(std::move(space), {0.1, 0.1});
    backend.extra_loss = [](const Candidate& candidate) { return candidate.variant == 1 ? -0.01 : 0; };
    const Ran ran("basic", backend);
    EXPECT_EQ(ran.search.trials()[0].candidate.variant, 0);
    EXPECT_EQ(ran.search.trials()[1].candidate.variant, 1);
    for (size_t i = 2; i < ran.search.trials().size(); ++i)
        EXPECT_EQ(ran.search.trials()[i].candidate.variant, 1);
}

TEST(Basic, FallsBackToBf16BeforeF32AndNeverMixesThem) {
    SpaceRule rule;
    rule.algorithms = {RangeAlgorithm::minmax};
    rule.precisions = {Precision::int8, Precision::bf16, Precision::f32};
    FakeBackend backend(make_space(plan_of({"Conv", "Conv", "Conv"}), {rule}), {0.03, 0.02, 0.04});
    backend.extra_loss = [](const Candidate& candidate) {
        return 0.1 + 0.001 * static_cast<double>(std::ranges::count(candidate.options, 1));
    };
    const Ran ran("basic", backend);
    std::vector<std::vector<int>> order;
    for (const Trial& trial : ran.search.trials()) order.push_back(trial.candidate.options);
    EXPECT_EQ(order, (std::vector<std::vector<int>>{{0, 0, 0},
                                                    {0, 0, 1},
                                                    {0, 1, 0},
                                                    {1, 0, 0},
                                                    {1, 0, 1},
                                                    {1, 1, 1},
                                                    {0, 0, 2},
                                                    {0, 2, 0},
                                                    {2, 0, 0},
                                                    {2, 0, 2},
                                                    {2, 2, 2}}));
}

TEST(Basic, ReadsEachTrialsOwnAccuracyAlsoWhenItWasEvaluatedBefore) {
    // Intel's tools report the previous trial's accuracy for a known candidate and then keep nothing.
    FakeBackend backend(two_way_space(3), {0.05, 0.04, -0.01});
    const Ran ran("basic", backend);
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{}, {2}, {1}, {0}, {0, 1}}));
    EXPECT_TRUE(ran.search.best()->met);
}

TEST(Mse, FallsBackWhatIsWorstByItsOwnError) {
    for (const bool higher : {true, false}) {
        FakeBackend backend(two_way_space(4), {0.01, 0.01, 0.01, 0.01});
        backend.own_errors = {0.2, 0.9, 0.1, 0.5};
        backend.higher_is_better = higher;
        backend.extra_loss = [](const Candidate&) { return 0.1; };
        const Ran ran("mse", backend,
                      [&](Search::Options& options) { options.criterion.higher_is_better = {higher}; });
        EXPECT_EQ(ran.fallbacks(), (Fallbacks{{}, {1}, {1, 3}, {0, 1, 3}, {0, 1, 2, 3}})) << higher;
        EXPECT_EQ(backend.scorings, 1);
        EXPECT_EQ(ran.why, std::nullopt);
    }
}

TEST(Mse, KeepsOnlyWhatImprovesThenAll) {
    FakeBackend backend(two_way_space(3), {0.01, -0.01, 0.01});
    backend.own_errors = {0.5, 0.9, 0.1};  // the worst one is good for the model
    backend.extra_loss = [](const Candidate&) { return 0.1; };
    const Ran ran("mse", backend);
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{}, {1}, {0}, {0, 2}, {0, 1}, {0, 1, 2}}));
}

TEST(Mse, StopsAtTheFirstSuccess) {
    FakeBackend backend(two_way_space(4), {0.001, 0.03, 0.001, 0.02});
    const Ran ran("mse", backend);
    EXPECT_EQ(ran.why, Why::success);
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{}, {1}, {1, 3}}));
}

TEST(MseV2, ScoresAnewAfterEveryFallback) {
    // op0 and op1 are two halves of one error: when one is gone the other does not matter. By the first scores alone op1 would be
    // the second to go.
    FakeBackend backend(two_way_space(4), {0, 0, 0.03, 0.02});
    backend.extra_loss = [&](const Candidate& candidate) {
        const bool both =
            backend.space().is_quantized(candidate, 0) && backend.space().is_quantized(candidate, 1);
        return both ? 0.06 : 0;
    };
    const Ran ran("mse_v2", backend);
    ASSERT_GE(ran.search.trials().size(), 4U);
    EXPECT_EQ(ran.fallbacks()[1], (std::vector<size_t>{1}));  // of equal ones the later
    EXPECT_EQ(ran.fallbacks()[2], (std::vector<size_t>{1, 2}));
    EXPECT_EQ(ran.fallbacks()[3], (std::vector<size_t>{1, 2, 3}));
    EXPECT_TRUE(ran.search.trials()[3].met);
    EXPECT_EQ(backend.scorings, 3);
}

TEST(MseV2, QuantizesTheLeastSensitiveAgainWhileThePromiseHolds) {
    // The outputs exaggerate: only op3 matters to the accuracy.
    FakeBackend backend(two_way_space(4), {0.001, 0.009, 0.0005, 0.02});
    backend.error_on_calibration = [&](const Candidate& candidate) {
        const std::vector<double> errors{5, 4, 3, 1};
        double sum = 0;
        for (size_t i = 0; i < 4; ++i) sum += backend.space().is_quantized(candidate, i) ? errors[i] : 0;
        return sum;
    };
    const Ran ran("mse_v2", backend);
    EXPECT_EQ(ran.why, std::nullopt);
    // op0, op1, op2, op3 fall; then op2 (worth 3) and op1 (worth 4) return; op0 would break the promise.
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{}, {0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}, {0, 1, 3}, {0, 3}, {3}}));
    EXPECT_FALSE(ran.search.trials().back().met);
    EXPECT_EQ(floats_of(backend.space(), ran.search.best()->candidate), (std::vector<size_t>{0, 3}));
}

TEST(MseV2, TriesAtMostTwoModelWiseCandidates) {
    FakeBackend backend(make_space(plan_of({"Conv", "MatMul"})), {0.1, 0.1});
    const Ran ran("mse_v2", backend);
    EXPECT_EQ(ran.search.trials()[0].candidate.options, (std::vector{0, 0}));
    EXPECT_EQ(ran.search.trials()[1].candidate.options, (std::vector{1, 1}));
    EXPECT_EQ(ran.fallbacks()[2].size(), 1U);
}

TEST(MseV2, EndsWhenEverythingFellBackInVain) {
    FakeBackend backend(two_way_space(3), {0.01, 0.01, 0.01});
    backend.extra_loss = [](const Candidate&) { return 0.1; };
    const Ran ran("mse_v2", backend);
    EXPECT_EQ(ran.why, std::nullopt);
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{}, {2}, {1, 2}, {0, 1, 2}}));
    EXPECT_EQ(ran.search.best(), nullptr);
}

TEST(Conservative, QuantizesOneFamilyAfterAnotherAndLeavesOutWhatFails) {
    FakeBackend backend(two_way_space({"Add", "MatMul", "Conv", "Attention", "ConvTranspose", "MaxPool"}),
                        {0.001, 0.03, 0.002, 0.001, 0.001, 0});
    const Ran ran("conservative", backend);
    EXPECT_EQ(ran.why, std::nullopt);
    // Floating point but for what moves values; convolutions; products fail; attention; additions.
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{0, 1, 3}, {0, 3}, {0, 1}, {1}}));
    EXPECT_FALSE(ran.search.trials()[1].met);
    EXPECT_EQ(ran.search.best()->number, 4);
}

TEST(Conservative, SkipsFamiliesThatAreNotThereAndStopsWhenTold) {
    FakeBackend backend(two_way_space({"MatMul", "Add"}), {0.001, 0.001});
    const Ran ran("conservative", backend);
    EXPECT_EQ(ran.fallbacks(), (Fallbacks{{1}, {}}));
    const Ran first("conservative", backend, 0.0);
    EXPECT_EQ(first.why, Why::success);
    EXPECT_EQ(first.fallbacks(), Fallbacks{{1}});
}

TEST(Conservative, LeavesExcludedOperatorsAlone) {
    Plan plan = plan_of({"Conv", "Conv"});
    plan.operators[0].precision = Precision::f32;
    FakeBackend backend(make_space(plan), {0.001, 0.001});
    const Ran ran("conservative", backend);
    EXPECT_EQ(ran.fallbacks(), Fallbacks{{0}});
}

}  // namespace kilter::classic_strategies_test
