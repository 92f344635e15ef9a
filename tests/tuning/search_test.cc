#include "kilter/tuning/search.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kilter/base/error.h"
#include "tuning/fake_backend.h"
#include "tuning/journal.h"

namespace kilter::search_test {

using testing::error_of;
using testing::FakeBackend;
using testing::floats;
using testing::MemoryFolder;
using testing::two_way_space;
using Why = SearchOver::Why;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Four operators; op0 alone on integers breaks the promise of 1 %.
FakeBackend small_backend() {
    FakeBackend backend(two_way_space(4), {0.02, 0.002, 0.002, 0.002});
    return backend;
}

Search::Options options(std::optional<double> timeout = {}, bool ends_by_itself = true,
                        int max_trials = 100) {
    Search::Options options;
    options.exit.timeout = timeout;
    options.exit.max_trials = max_trials;
    options.ends_by_itself = ends_by_itself;
    return options;
}

// Evaluates candidates one after another; why and after how many the search ended.
std::pair<std::optional<Why>, size_t> end_of(Search& search, const std::vector<Candidate>& candidates) {
    for (size_t i = 0; i < candidates.size(); ++i) try {
            search.evaluate(candidates[i], "test");
        } catch (const SearchOver& over) {
            return {over.why, i + 1};
        }
    return {{}, candidates.size()};
}

TEST(Search, JudgesATrial) {
    FakeBackend backend = small_backend();
    backend.gain = {0.1, 0.2, 0.1, 0.1};
    Search search(backend, nullptr, options());
    EXPECT_EQ(search.baseline().accuracy, Accuracy{1});
    const Trial& missed = search.evaluate(search.space().first(), "all");
    EXPECT_EQ(missed.number, 1);
    EXPECT_EQ(missed.reason, "all");
    EXPECT_FALSE(missed.met);
    EXPECT_NEAR(missed.excess, 0.016, 1e-12);
    EXPECT_NEAR(missed.objective, 0.5, 1e-12);
    EXPECT_EQ(search.best(), nullptr);
    const Trial& met = search.evaluate(floats(search.space(), {0}), "without op0");
    EXPECT_TRUE(met.met);
    EXPECT_EQ(met.number, 2);
    EXPECT_EQ(search.best(), &met);
    EXPECT_EQ(&search.trials().front(), &missed);  // references stay valid
    EXPECT_EQ(backend.baselines, 1);
}

TEST(Search, GivesAnEarlierTrialBackWithoutCountingIt) {
    FakeBackend backend = small_backend();
    Search search(backend, nullptr, options({}, true, 3));
    const Trial& a = search.evaluate(search.space().first(), "a");
    const Trial& b = search.evaluate(floats(search.space(), {1}), "b");
    const Trial& again = search.evaluate(search.space().first(), "again");
    EXPECT_EQ(&again, &a);
    EXPECT_NE(a.outcome.accuracy, b.outcome.accuracy);
    EXPECT_EQ(again.reason, "a");
    EXPECT_EQ(search.trials().size(), 2U);
    EXPECT_EQ(search.trials_left(), 1);
    EXPECT_EQ(backend.evaluated.size(), 2U);
}

TEST(Search, StopsAtTheFirstSuccessWithoutATimeBudget) {
    FakeBackend backend = small_backend();
    const Space& space = backend.space();
    const std::vector<Candidate> candidates{space.first(), floats(space, {0}), floats(space, {0, 1})};
    for (const bool ends_by_itself : {false, true}) {
        Search zero(backend, nullptr, options(0, ends_by_itself));
        EXPECT_EQ(end_of(zero, candidates), (std::pair(std::optional(Why::success), size_t{2})));
        EXPECT_EQ(zero.best()->number, 2);
    }
    // Nothing said: strategies that know their end go on to it.
    Search unset(backend, nullptr, options({}, false));
    EXPECT_EQ(end_of(unset, candidates).second, 2U);
    Search itself(backend, nullptr, options({}, true));
    EXPECT_EQ(end_of(itself, candidates), (std::pair(std::optional<Why>(), size_t{3})));
    // A time budget is there to be used.
    Search budget(backend, nullptr, options(1000, false));
    EXPECT_EQ(end_of(budget, candidates), (std::pair(std::optional<Why>(), size_t{3})));
}

TEST(Search, StopsWhenTheTrialsAreUsedUp) {
    FakeBackend backend = small_backend();
    const Space& space = backend.space();
    Search search(backend, nullptr, options({}, true, 2));
    EXPECT_EQ(end_of(search, {space.first(), floats(space, {1}), floats(space, {2})}),
              (std::pair(std::optional(Why::trials), size_t{2})));
    EXPECT_EQ(backend.evaluated.size(), 2U);
    EXPECT_EQ(search.trials_left(), 0);
    Search none(backend, nullptr, options({}, true, 0));
    EXPECT_EQ(end_of(none, {space.first()}), (std::pair(std::optional(Why::trials), size_t{1})));
    EXPECT_EQ(none.best_or_nearest(), nullptr);
}

TEST(Search, StopsWhenTheTimeIsUp) {
    FakeBackend backend = small_backend();
    const Space& space = backend.space();
    Search search(backend, nullptr, options(1e-9));
    EXPECT_EQ(end_of(search, {space.first()}), (std::pair(std::optional(Why::timeout), size_t{1})));
    EXPECT_THROW(search.check_time(), SearchOver);
    Search patient(backend, nullptr, options(1000));
    EXPECT_NO_THROW(patient.check_time());
    EXPECT_GE(patient.elapsed(), 0);
}

TEST(Search, TakesTheFirstTrialWhenOnlyPerformanceCounts) {
    FakeBackend backend = small_backend();
    backend.rejects = [](double loss) { return loss > 0.01; };
    Search::Options quick = options(1000);
    quick.exit.performance_only = true;
    Search search(backend, nullptr, quick);
    EXPECT_EQ(end_of(search, {search.space().first()}),
              (std::pair(std::optional(Why::performance_only), size_t{1})));
    ASSERT_NE(search.best(), nullptr);
    EXPECT_FALSE(search.best()->met);
    // What is reported is the accuracy of the whole set.
    EXPECT_FALSE(search.best()->outcome.rejected_early);
    EXPECT_EQ(backend.kept, std::vector{1});
}

TEST(Search, PrefersTheCheapestThenTheMoreAccurateThenTheEarlier) {
    FakeBackend backend(two_way_space(4), {0.001, 0.002, 0.002, 0.003});
    backend.gain = {0.2, 0.1, 0.1, 0.1};
    Search search(backend, nullptr, options());
    const Space& space = search.space();
    search.evaluate(floats(space, {0}), "0.7");
    EXPECT_EQ(search.best()->number, 1);
    search.evaluate(floats(space, {1}), "0.6");
    EXPECT_EQ(search.best()->number, 2);
    search.evaluate(floats(space, {2}), "0.6, as accurate");
    EXPECT_EQ(search.best()->number, 2);
    search.evaluate(floats(space, {3}), "0.6, more accurate");
    EXPECT_EQ(search.best()->number, 4);
    search.evaluate(floats(space, {0, 1, 2, 3}), "FP32");
    EXPECT_EQ(search.best()->number, 4);
    EXPECT_EQ(backend.kept, (std::vector{1, 2, 4}));
}

TEST(Search, FollowsTheObjective) {
    FakeBackend backend(two_way_space(4), {0.004, 0.001, 0.001, 0.001});
    Search::Options accurate = options();
    accurate.objective = Objective::parse("accuracy");
    Search search(backend, nullptr, accurate);
    search.evaluate(search.space().first(), "fast");
    search.evaluate(floats(search.space(), {0}), "accurate");
    EXPECT_EQ(search.best()->number, 2);
}

TEST(Search, HasTheNearestTrialWhenNoneKeepsThePromise) {
    FakeBackend backend(two_way_space(3), {0.02, 0.03, 0.04});
    backend.rejects = [](double loss) { return loss < 0.045; };
    Search search(backend, nullptr, options());
    EXPECT_EQ(search.best_or_nearest(), nullptr);
    search.evaluate(search.space().first(), "0.09");
    search.evaluate(floats(search.space(), {0}), "0.07");
    search.evaluate(floats(search.space(), {1}), "0.06");
    EXPECT_EQ(search.best_or_nearest()->number, 3);
    // The accuracy of a part of the samples is no accuracy.
    EXPECT_TRUE(search.evaluate(floats(search.space(), {1, 2}), "0.02 rejected").outcome.rejected_early);
    EXPECT_EQ(search.best(), nullptr);
    EXPECT_EQ(search.best_or_nearest()->number, 3);
    EXPECT_EQ(backend.kept, (std::vector{1, 2, 3}));
}

TEST(Search, AnAccuracyThatIsNoNumberIsNeitherSuccessNorNearest) {
    FakeBackend backend(two_way_space(2), {0.02, 0.03});
    backend.extra_loss = [&](const Candidate& candidate) { return candidate.options[0] == 1 ? kNan : 0.0; };
    Search search(backend, nullptr, options());
    EXPECT_FALSE(search.evaluate(floats(search.space(), {0}), "NaN").met);
    search.evaluate(search.space().first(), "0.05");
    EXPECT_EQ(search.best_or_nearest()->number, 2);
}

TEST(Search, RefusesABaselineThatIsNoNumber) {
    for (const double accuracy : {kNan, kInfinity}) {
        FakeBackend backend = small_backend();
        backend.baseline_accuracy = accuracy;
        EXPECT_NE(error_of([&] { Search(backend, nullptr, options()); }).find("FP32"), std::string::npos);
        Search::Options quick = options();
        quick.exit.performance_only = true;  // nobody looks at the accuracy then
        EXPECT_NO_THROW(Search(backend, nullptr, quick));
    }
}

TEST(Search, RefusesOtherNumbersOfMetrics) {
    FakeBackend backend = small_backend();
    Search::Options two = options();
    two.criterion.higher_is_better = {true, true};
    EXPECT_NE(error_of([&] { Search(backend, nullptr, two); }).find("1 figures, the criterion has 2"),
              std::string::npos);
}

TEST(Search, NeverAcceptsWhatWasRejectedEarly) {
    FakeBackend backend(two_way_space(2), {0.001, 0.001});
    backend.rejects = [](double) { return true; };
    Search search(backend, nullptr, options());
    const Trial& early = search.evaluate(search.space().first(), "rejected by bad luck");
    EXPECT_TRUE(early.outcome.rejected_early);
    EXPECT_FALSE(early.met);
    EXPECT_EQ(search.best(), nullptr);
    // Asked for exactly, it is evaluated again, as the same trial, and is as good as any other.
    const Trial& exact = search.evaluate(search.space().first(), "again", true);
    EXPECT_EQ(&exact, &early);
    EXPECT_TRUE(exact.met);
    EXPECT_EQ(search.trials().size(), 1U);
    EXPECT_EQ(search.best(), &exact);
    EXPECT_EQ(backend.kept.back(), 1);
    EXPECT_EQ(backend.were_complete, (std::vector{false, true}));
    EXPECT_EQ(&search.evaluate(search.space().first(), "and again", true), &exact);
    EXPECT_EQ(backend.evaluated.size(), 2U);
    // So does a search that stops at its first success.
    Search first(backend, nullptr, options(0));
    first.evaluate(first.space().first(), "rejected by bad luck");
    EXPECT_THROW(first.evaluate(first.space().first(), "again", true), SearchOver);
}

TEST(Search, RejectsEarlyOnlyWhenThatIsAllowed) {
    FakeBackend backend = small_backend();
    Search::Options patient = options();
    patient.early_rejection = false;
    Search search(backend, nullptr, patient);
    search.evaluate(search.space().first(), "all");
    Search quick(backend, nullptr, options());
    quick.evaluate(quick.space().first(), "all");
    quick.evaluate(floats(quick.space(), {0}), "exactly", true);
    EXPECT_EQ(backend.were_complete, (std::vector{true, false, true}));
}

TEST(Search, AsksForNumbersOnce) {
    FakeBackend backend = small_backend();
    Search search(backend, nullptr, options());
    const Candidate first = search.space().first(), other = floats(search.space(), {0});
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(search.gains(), backend.gain);
        EXPECT_NEAR(search.scores(Scoring::restored, first)[0], 0.02, 1e-12);
        EXPECT_EQ(search.scores(Scoring::restored, other)[0], 0);
        EXPECT_EQ(search.scores(Scoring::own, first), backend.losses);
        EXPECT_NEAR(search.output_error(first), 0.026, 1e-12);
        EXPECT_NEAR(search.output_error(other), 0.006, 1e-12);
    }
    EXPECT_EQ(backend.gainings, 1);
    EXPECT_EQ(backend.scorings, 3);
    EXPECT_EQ(backend.errors, 2);
    backend.own_errors = {1};
    EXPECT_NE(error_of([&] { search.scores(Scoring::own, other); }).find("1 scores for 4 operators"),
              std::string::npos);
}

TEST(Search, TellsWhatItDoes) {
    FakeBackend backend = small_backend();
    std::vector<std::string> told;
    Search::Options talkative = options();
    talkative.starting = [&](const std::string& what) { told.push_back(what); };
    talkative.measured_baseline = [&](const Outcome& outcome) {
        told.push_back(fmt::format("baseline {}", outcome.accuracy[0]));
    };
    talkative.finished = [&](const Trial& trial, const Trial* best) {
        told.push_back(fmt::format("{} done, best {}", trial.number, best == nullptr ? 0 : best->number));
    };
    Search search(backend, nullptr, talkative);
    search.evaluate(search.space().first(), "all");
    search.evaluate(search.space().first(), "the same");
    search.evaluate(floats(search.space(), {0}), "op0");
    EXPECT_EQ(told, (std::vector<std::string>{"baseline 1", "trial 1: all", "1 done, best 0", "trial 2: op0",
                                              "2 done, best 2"}));
}

TEST(Search, AnExceptionOfTheBackendReachesTheCallerAndTheJournalStays) {
    const MemoryFolder folder;
    FakeBackend backend = small_backend();
    backend.throws_at = 2;
    {
        Journal journal(folder / "journal", Journal::Open::create);
        Search search(backend, &journal, options());
        search.evaluate(search.space().first(), "all");
        EXPECT_THROW(search.evaluate(floats(search.space(), {0}), "breaks"), std::runtime_error);
        EXPECT_EQ(search.trials().size(), 1U);
        EXPECT_EQ(search.best_or_nearest()->number, 1);
    }
    Journal journal(folder / "journal", Journal::Open::resume);
    EXPECT_EQ(journal.records().size(), 2U);  // baseline and the first trial
    Search search(backend, &journal, options());
    search.evaluate(search.space().first(), "all");
    EXPECT_EQ(search.evaluate(floats(search.space(), {0}), "works now").number, 2);
    EXPECT_EQ(backend.evaluated.size(), 3U);
    EXPECT_EQ(backend.baselines, 1);
}

TEST(Search, KeepsNumbersThatAreNone) {
    const MemoryFolder folder;
    FakeBackend backend = small_backend();
    backend.own_errors = {kNan, kInfinity, -kInfinity, 0.1};
    backend.extra_loss = [](const Candidate&) { return kInfinity; };
    for (const auto how : {Journal::Open::create, Journal::Open::resume}) {
        Journal journal(folder / "journal", how);
        Search search(backend, &journal, options());
        const std::vector<double> scores = search.scores(Scoring::own, search.space().first());
        EXPECT_TRUE(std::isnan(scores[0]));
        EXPECT_EQ(scores[1], kInfinity);
        EXPECT_EQ(scores[2], -kInfinity);
        EXPECT_EQ(scores[3], 0.1);
        EXPECT_EQ(search.output_error(search.space().first()), kInfinity);
        EXPECT_EQ(search.evaluate(search.space().first(), "all").outcome.accuracy[0], -kInfinity);
    }
    EXPECT_EQ(backend.scorings, 1);
    EXPECT_EQ(backend.evaluated.size(), 1U);
}

}  // namespace kilter::search_test
