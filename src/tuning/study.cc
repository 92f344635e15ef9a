#include "tuning/study.h"

#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "tuning/identity.h"
#include "tuning/model_backend.h"

namespace kilter {
namespace {

// What killed processes were writing and, in front of a new study, what is left of one whose journal was taken away: statistics
// of other samples would be taken for ours.
void tidy_up(const std::filesystem::path& workspace, bool fresh) {
    for (const auto& entry : std::filesystem::directory_iterator(workspace)) {
        const std::filesystem::path& path = entry.path();
        const bool stale = path.extension() == ".kstats" || path == best_path(workspace) ||
                           path == best_path(workspace).replace_extension(".pb");
        if (path.extension() == ".partial" || (fresh && stale)) std::filesystem::remove(path);
    }
}

std::string why(SearchOver over, const ExitPolicy& exit) {
    switch (over.why) {
        case SearchOver::Why::success:
            return "the first model that keeps the promise";
        case SearchOver::Why::trials:
            return fmt::format("all {} trials made", exit.max_trials);
        case SearchOver::Why::timeout:
            return fmt::format("{:g} seconds are over", exit.timeout.value_or(0));
        case SearchOver::Why::performance_only:
            break;
    }
    return "only speed was asked for";
}

// Trials that are not both less accurate and more expensive than another.
std::vector<int> pareto_front(const std::deque<Trial>& trials) {
    std::vector<int> front;
    for (const Trial& trial : trials) {
        if (trial.outcome.rejected_early || !std::isfinite(trial.excess)) continue;
        bool beaten = false;
        for (const Trial& other : trials) {
            if (other.outcome.rejected_early) continue;
            const bool no_worse = other.excess <= trial.excess && other.objective <= trial.objective;
            const bool better = other.excess < trial.excess || other.objective < trial.objective;
            beaten = beaten || (no_worse && better);
        }
        if (!beaten) front.push_back(trial.number);
    }
    return front;
}

}  // namespace

std::unique_ptr<Journal> open_study(const TuneOptions& options, const Record& study) {
    if (options.workspace.empty()) return nullptr;
    const std::filesystem::path path = journal_path(options.workspace);
    std::error_code error;
    std::filesystem::create_directories(options.workspace, error);
    require(!error, "{}: cannot make the folder: {}", options.workspace.string(), error.message());
    const bool there = std::filesystem::exists(path);
    if (options.resume && !there)
        throw Error(fmt::format("{}: there is no study to resume", options.workspace.string()),
                    "leave out --resume to start one");
    auto journal =
        std::make_unique<Journal>(path, options.resume ? Journal::Open::resume : Journal::Open::create);
    tidy_up(options.workspace, journal->records().empty());
    if (journal->records().empty())  // also: killed before it was written
        journal->append(line(study));
    else
        check_same_study(parse_record(journal->records().front()), study, options.workspace);
    return journal;
}

std::string why_spared(const Search& search, size_t index) {
    const std::vector<double>& scores = search.last_scores();
    const std::vector<double>& gains = search.last_gains();
    if (!scores.empty()) {
        double sum = 0;
        for (const double score : scores) sum += std::max(score, 0.0);
        if (sum > 0 && scores[index] > 0)
            return fmt::format("spared: {:.0f} % of the error of the outputs", 100 * scores[index] / sum);
    }
    if (!gains.empty() && gains[index] < 0) return "spared: slower on integers";
    return "the search spared it";
}

StudyResult run_study(Backend& backend, Journal* journal, Strategy& strategy, const TuneOptions& options,
                      const std::function<void(const Search&, StudyResult&)>& finish) {
    Search::Options settings;
    settings.criterion = options.criterion;
    settings.objective = options.objective;
    settings.exit = options.exit;
    settings.seed = options.seed;
    settings.ends_by_itself = strategy.ends_by_itself();
    settings.early_rejection = options.early_rejection;
    if (options.progress.working)
        settings.starting = [&](const std::string& what) { options.progress.working(what, 0, 0); };
    settings.measured_baseline = options.progress.baseline;
    if (options.progress.trial)
        settings.finished = [&](const Trial& trial, const Trial* best) {
            options.progress.trial(trial, backend.space(), best);
        };
    Search search(backend, journal, std::move(settings));

    StudyResult result;
    result.ended = "nothing left to try";
    try {
        strategy.run(search);
        if (search.best() != nullptr) result.ended = "the strategy found what it looks for";
    } catch (const SearchOver& over) {
        result.ended = why(over, options.exit);
    }
    const Trial* best = search.best_or_nearest();
    if (best == nullptr)  // the time was over before the first trial
        best = &search.evaluate(backend.space().first(), "all on integers");
    result.met = best->met;
    result.best = *best;
    result.baseline = search.baseline();
    result.trials.assign(search.trials().begin(), search.trials().end());
    for (const Trial& trial : result.trials) {
        result.summaries.push_back(backend.space().summary(trial.candidate));
        result.full_evaluations += trial.outcome.rejected_early ? 0 : 1;
    }
    result.pareto = pareto_front(search.trials());
    result.seconds = search.elapsed();
    result.workspace = options.workspace;
    finish(search, result);
    return result;
}

}  // namespace kilter
