// A study that is cut off after any of its records and resumed ends as it would have without that.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "formats/onnx_samples.h"
#include "tuning/fake_backend.h"
#include "tuning/journal.h"

namespace kilter::resume_test {

using onnx::testing::write_file;
using testing::FakeBackend;
using testing::MemoryFolder;
using testing::plan_of;
using testing::Ran;

// Needs two of six operators in floating point; kl is a little better, a variant that was not asked for too.
FakeBackend backend_for(std::string_view strategy) {
    SpaceRule rule;
    rule.algorithms = {RangeAlgorithm::minmax, RangeAlgorithm::kl};
    Space space = make_space(plan_of({"Conv", "Conv", "MatMul", "Add", "MatMul"}), {rule});
    space.variants = {{"", 100, {}}, {"equalization", 100, {}}};
    space.variants[1].recipes.equalization = true;
    FakeBackend backend(std::move(space), {0.02, 0.001, 0.004, 0.001, 0.009});
    backend.gain = {0.1, 0.15, 0.05, 0.05, 0.15};
    backend.extra_loss = [](const Candidate& candidate) {
        return (candidate.variant == 1 ? -0.002 : 0) + (candidate.options[1] == 1 ? -0.0005 : 0);
    };
    // Those that want exact figures ask for them.
    if (strategy != "exhaustive") backend.rejects = [](double loss) { return loss > 0.03; };
    return backend;
}

struct Study {
    std::vector<Trial> trials;
    int best = 0;
    std::optional<SearchOver::Why> why;
};

Study study(std::string_view strategy, FakeBackend& backend, Journal& journal,
            std::optional<double> timeout) {
    Ran ran(
        strategy, backend,
        [&](Search::Options& options) {
            options.exit.timeout = timeout;
            options.exit.max_trials = strategy == "bayesian" ? 8 : 14;  // each of its proposals takes a while
        },
        &journal);
    Study study{{ran.search.trials().begin(), ran.search.trials().end()}, 0, ran.why};
    if (ran.search.best() != nullptr) study.best = ran.search.best()->number;
    return study;
}

void expect_equal(const Study& resumed, const Study& whole, const std::string& where) {
    ASSERT_EQ(resumed.trials.size(), whole.trials.size()) << where;
    for (size_t i = 0; i < whole.trials.size(); ++i) {
        EXPECT_EQ(resumed.trials[i].number, whole.trials[i].number) << where;
        EXPECT_EQ(resumed.trials[i].candidate, whole.trials[i].candidate) << where << ", trial " << i + 1;
        EXPECT_EQ(resumed.trials[i].outcome, whole.trials[i].outcome) << where << ", trial " << i + 1;
        EXPECT_EQ(resumed.trials[i].reason, whole.trials[i].reason) << where;
        EXPECT_EQ(resumed.trials[i].met, whole.trials[i].met) << where;
    }
    EXPECT_EQ(resumed.best, whole.best) << where;
    EXPECT_EQ(resumed.why, whole.why) << where;
}

int calls(const FakeBackend& backend) {
    return static_cast<int>(backend.evaluated.size()) + backend.baselines + backend.scorings +
           backend.errors + backend.gainings;
}

class Resume : public ::testing::TestWithParam<std::string> {};

TEST_P(Resume, GoesOnWhereverItWasCutOff) {
    const MemoryFolder folder;
    const std::filesystem::path path = folder / "journal";
    for (const std::optional<double> timeout : {std::optional<double>(), std::optional(1e6)}) {
        FakeBackend backend = backend_for(GetParam());
        Study whole;
        {
            Journal journal(path, Journal::Open::create);
            whole = study(GetParam(), backend, journal, timeout);
        }
        EXPECT_GT(whole.trials.size(), timeout ? 2U : 0U);
        const int all = calls(backend);
        std::ostringstream content;
        content << std::ifstream(path).rdbuf();
        const std::string text = content.str();
        // The first line is the journal's own; every further one is an answer of the backend.
        int kept = 0;
        for (size_t end = text.find('\n') + 1;; end = text.find('\n', end) + 1, ++kept) {
            write_file(path, text.substr(0, end));
            FakeBackend again = backend_for(GetParam());
            {
                Journal journal(path, Journal::Open::resume);
                ASSERT_EQ(journal.records().size(), static_cast<size_t>(kept));
                expect_equal(study(GetParam(), again, journal, timeout), whole,
                             fmt::format("after {}", kept));
            }
            EXPECT_EQ(calls(again), all - kept) << "after " << kept;
            EXPECT_EQ(Journal::read(path).size(), static_cast<size_t>(all)) << "after " << kept;
            if (end == text.size()) break;
        }
        EXPECT_EQ(kept, all);
        std::filesystem::remove(path);
    }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Resume,
                         ::testing::Values("auto", "basic", "mse", "mse_v2", "conservative", "random",
                                           "exhaustive", "bayesian", "tpe"),
                         [](const auto& info) { return info.param; });

TEST(ResumedStudy, ReadsItsTrialsBackThoughTheTimeIsSpent) {
    const MemoryFolder folder;
    FakeBackend backend = backend_for("auto");
    Study before;
    {
        Journal journal(folder / "journal", Journal::Open::create);
        before = study("auto", backend, journal, 1e6);
    }
    const size_t evaluated = backend.evaluated.size();
    // The budget is over at once, but what was found in it stays.
    Journal journal(folder / "journal", Journal::Open::resume);
    const Study after = study("auto", backend, journal, 1e-9);
    EXPECT_EQ(after.trials.size(), before.trials.size());
    EXPECT_EQ(after.best, before.best);
    EXPECT_EQ(after.why, SearchOver::Why::timeout);
    EXPECT_EQ(backend.evaluated.size(), evaluated);
}

TEST(ResumedStudy, AddsUpTheTimeOfAllSessions) {
    const MemoryFolder folder;
    FakeBackend backend = backend_for("auto");
    double first = 0;
    {
        Journal journal(folder / "journal", Journal::Open::create);
        journal.append(
            R"({"type":"baseline","elapsed":100.5,"outcome":{"accuracy":[1.0],"samples":100,)"
            R"("rejected_early":false,"milliseconds":10.0,"bytes":4000.0,"memory":100.0,"seconds":0.25}})");
    }
    {
        Journal journal(folder / "journal", Journal::Open::resume);
        Search search(backend, &journal, {});
        EXPECT_EQ(backend.baselines, 0);
        EXPECT_GE(search.elapsed(), 100.5);
        search.output_error(search.space().first());
        first = search.elapsed();
    }
    Journal journal(folder / "journal", Journal::Open::resume);
    const Search search(backend, &journal, {});
    EXPECT_GE(search.elapsed(), 100.5);
    EXPECT_LE(search.elapsed(), first + 60);
}

}  // namespace kilter::resume_test
