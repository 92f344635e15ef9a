// The strategies that sample the space, and the one that takes all of it.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "tuning/fake_backend.h"

namespace kilter::sampling_strategies_test {

using testing::FakeBackend;
using testing::floats;
using testing::floats_of;
using testing::plan_of;
using testing::Ran;
using testing::two_way_space;
using Why = SearchOver::Why;

std::vector<Candidate> candidates(const Search& search) {
    std::vector<Candidate> all;
    for (const Trial& trial : search.trials()) all.push_back(trial.candidate);
    return all;
}

std::vector<Candidate> draw(std::string_view strategy, FakeBackend& backend, uint64_t seed, int trials) {
    const Ran ran(strategy, backend, [&](Search::Options& options) {
        options.seed = seed;
        options.exit.timeout = 1e6;
        options.exit.max_trials = trials;
    });
    return candidates(ran.search);
}

// Eight operators, 256 candidates. op1, op4 and op6 cannot be on integers; the best candidate keeps the others there.
FakeBackend needle() {
    FakeBackend backend(two_way_space(8), {0.001, 0.02, 0.001, 0.001, 0.03, 0.001, 0.015, 0.001});
    backend.gain = {0.05, 0.08, 0.05, 0.04, 0.1, 0.05, 0.05, 0.08};
    return backend;
}
const std::vector<size_t> kNeedle{1, 4, 6};

// The trial at which a strategy found the best candidate there is; `most` + 1 when it did not.
int trials_to_optimum(std::string_view strategy, uint64_t seed, int most) {
    FakeBackend backend = needle();
    const Candidate optimum = floats(backend.space(), kNeedle);
    int found = most + 1;
    const Ran ran(strategy, backend, [&](Search::Options& options) {
        options.seed = seed;
        options.exit.timeout = 1e6;
        options.exit.max_trials = most;
        options.finished = [&](const Trial& trial, const Trial*) {
            if (trial.candidate != optimum) return;
            found = trial.number;
            throw SearchOver{Why::success};
        };
    });
    return found;
}

double mean_trials_to_optimum(std::string_view strategy, int most) {
    constexpr int kSeeds = 5;
    double sum = 0;
    for (int seed = 1; seed <= kSeeds; ++seed)
        sum += trials_to_optimum(strategy, static_cast<uint64_t>(seed), most);
    return sum / kSeeds;
}

TEST(Exhaustive, VisitsEveryCandidateExactlyOnceTheLastOperatorFastest) {
    SpaceRule rule;
    rule.algorithms = {RangeAlgorithm::minmax, RangeAlgorithm::kl};
    Space space = make_space(plan_of({"Conv", "Add", "MatMul"}), {rule});
    space.variants = {{"", 100, {}}, {"", 200, {}}, {"not asked for", 100, {}}};
    space.asked_variants = 2;
    FakeBackend backend(std::move(space), {0.1, 0.1, 0.1});
    const Ran ran("exhaustive", backend, 1e6);
    EXPECT_EQ(ran.why, std::nullopt);
    std::vector<Candidate> expected;
    for (int variant = 0; variant < 2; ++variant)
        for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b)
                for (int c = 0; c < 3; ++c) expected.push_back({{a, b, c}, variant});
    EXPECT_EQ(candidates(ran.search), expected);
    EXPECT_EQ(backend.evaluated, expected);
}

TEST(Exhaustive, FindsTheBestCandidateAndStopsAtTheFirstSuccessWithoutABudget) {
    FakeBackend backend = needle();
    const Ran all("exhaustive", backend, 1e6);
    EXPECT_EQ(all.search.trials().size(), 256U);
    EXPECT_EQ(floats_of(backend.space(), all.search.best()->candidate), kNeedle);
    const Ran first("exhaustive", backend);
    EXPECT_EQ(first.why, Why::success);
    EXPECT_TRUE(first.search.trials().back().met);
    EXPECT_EQ(std::ranges::count(first.search.trials(), true, &Trial::met), 1);
}

class Sampling : public ::testing::TestWithParam<std::string> {};

TEST_P(Sampling, IsReproducibleBySeed) {
    FakeBackend backend = needle();
    const std::vector<Candidate> once = draw(GetParam(), backend, 1978, 25);
    EXPECT_EQ(draw(GetParam(), backend, 1978, 25), once);
    EXPECT_NE(draw(GetParam(), backend, 1979, 25), once);
    EXPECT_EQ(once.size(), 25U);
}

TEST_P(Sampling, ReachesEveryKindOfCandidateAndNoneTwice) {
    FakeBackend backend = needle();
    backend.extra_loss = [](const Candidate&) { return 0.5; };
    const std::vector<Candidate> drawn = draw(GetParam(), backend, 3, 40);
    EXPECT_EQ(drawn.size(), 40U);
    EXPECT_EQ(backend.evaluated, drawn);
    std::set<size_t> shares;
    for (const Candidate& candidate : drawn) shares.insert(floats_of(backend.space(), candidate).size());
    EXPECT_GE(shares.size(), 6U);  // of nine
}

TEST_P(Sampling, FallsBackWhenIntegersCanNeverPass) {
    // Intel's samplers choose among integers only: they would go on for ever.
    FakeBackend backend(two_way_space(6), std::vector<double>(6, 0.02));
    const Ran ran(GetParam(), backend, {}, 200);
    EXPECT_EQ(ran.why, Why::success);
    ASSERT_NE(ran.search.best(), nullptr);
    EXPECT_EQ(floats_of(backend.space(), ran.search.best()->candidate).size(), 6U);
}

TEST_P(Sampling, EndsWhenThereIsNothingLeftToTry) {
    FakeBackend backend(two_way_space(4), std::vector<double>(4, 0.02));
    const Ran ran(GetParam(), backend, 1e6, 1000);
    EXPECT_EQ(ran.why, std::nullopt);
    EXPECT_EQ(ran.search.trials().size(), 16U);
    EXPECT_EQ(backend.evaluated.size(), 16U);
}

TEST_P(Sampling, StaysWithTheVariantsThatWereAskedFor) {
    Space space = two_way_space(4);
    space.variants = {{"", 100, {}}, {"", 200, {}}, {"not asked for", 100, {}}};
    space.asked_variants = 2;
    FakeBackend backend(std::move(space), std::vector<double>(4, 0.02));
    std::set<int> seen;
    for (const Candidate& candidate : draw(GetParam(), backend, 1, 30)) seen.insert(candidate.variant);
    EXPECT_EQ(seen, (std::set{0, 1}));
}

TEST_P(Sampling, TakesNumbersThatAreNone) {
    FakeBackend backend(two_way_space(3), std::vector<double>(3, 0.02));
    backend.extra_loss = [](const Candidate& candidate) { return candidate.options[0] == 0 ? NAN : 0; };
    const Ran ran(GetParam(), backend, [](Search::Options& options) {
        options.exit.timeout = 1e6;
        options.objective = Objective::parse("accuracy");
    });
    EXPECT_EQ(ran.search.trials().size(), 8U);
    EXPECT_EQ(floats_of(backend.space(), ran.search.best()->candidate).size(), 3U);
}

TEST_P(Sampling, IsDoneWithASpaceWithoutOperators) {
    FakeBackend backend(Space{{}, {{"", 1, {}}, {"", 2, {}}, {"", 3, {}}}, Mode::smart, 3}, {});
    backend.extra_loss = [](const Candidate& candidate) { return 0.1 * (candidate.variant + 1); };
    const Ran ran(GetParam(), backend);
    EXPECT_EQ(ran.search.trials().size(), 3U);
}

INSTANTIATE_TEST_SUITE_P(Strategies, Sampling, ::testing::Values("random", "bayesian", "tpe"),
                         [](const auto& info) { return info.param; });

TEST(RandomStrategy, DrawsEveryShareOfFloatingPointAlike) {
    FakeBackend backend(two_way_space(20), std::vector<double>(20, 0.02));
    size_t few = 0, many = 0;
    for (const Candidate& candidate : draw("random", backend, 1, 300)) {
        const size_t count = floats_of(backend.space(), candidate).size();
        few += count < 7 ? 1 : 0;
        many += count > 13 ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(few), 100, 30);
    EXPECT_NEAR(static_cast<double>(many), 100, 30);
}

TEST(Bayesian, FindsTheOptimumInFewerTrialsThanTryingAll) {
    // Trying all in order finds it after 1 + 0b01001010 = 75 trials, drawing at random after 128 on average.
    EXPECT_LT(mean_trials_to_optimum("bayesian", 100), 30);
}

TEST(Tpe, FindsTheOptimumInFewerTrialsThanTryingAll) { EXPECT_LT(mean_trials_to_optimum("tpe", 100), 45); }

TEST(Tpe, WeighsAccuracyAgainstSpeed) {
    // With no weight on the accuracy it learns that integers are fast; with none on the speed, that floating point is right.
    const auto mean_floats = [](double accuracy_weight, double latency_weight) {
        FakeBackend backend(two_way_space(8), std::vector<double>(8, 0.05));
        const auto strategy =
            make_strategy("tpe", {{"accuracy_weight", accuracy_weight}, {"latency_weight", latency_weight}});
        Search search(backend, nullptr, testing::options_for(*strategy, 1e6, 60));
        testing::run_to_end(*strategy, search);
        size_t sum = 0;
        for (size_t i = 30; i < 60; ++i)
            sum += floats_of(backend.space(), search.trials()[i].candidate).size();
        return static_cast<double>(sum) / 30;
    };
    EXPECT_LT(mean_floats(0, 1) + 2, mean_floats(1, 0));
}

}  // namespace kilter::sampling_strategies_test
