#include "kilter/tuning/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "tuning/journal.h"
#include "tuning/records.h"

namespace kilter {
namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string_view word(Scoring scoring) { return scoring == Scoring::restored ? "restored" : "own"; }

}  // namespace

struct Search::Recorded {
    std::unordered_map<uint64_t, std::deque<Outcome>> trials;  // by key, in the order they were made
    std::unordered_map<std::string, std::vector<double>> numbers;
    std::optional<Outcome> baseline;
    bool replayed = false;  // the latest trial comes from the journal
    size_t left = 0;        // trials that were not asked for again yet
};

Search::Search(Backend& backend, Journal* journal, Options options)
    : backend_(backend),
      journal_(journal),
      options_(std::move(options)),
      random_(options_.seed),
      recorded_(std::make_unique<Recorded>()),
      started_(now()) {
    require(!space().variants.empty(), "the space has no variant");
    read_journal();
    if (recorded_->baseline) {
        baseline_ = *recorded_->baseline;
    } else {
        baseline_ = backend_.baseline();
        if (journal_ != nullptr)
            journal_->append(
                line({{"type", "baseline"}, {"elapsed", elapsed()}, {"outcome", to_record(baseline_)}}));
    }
    require(baseline_.accuracy.size() == options_.criterion.higher_is_better.size(),
            "the evaluation gives {} figures, the criterion has {}", baseline_.accuracy.size(),
            options_.criterion.higher_is_better.size());
    for (const double figure : baseline_.accuracy)
        require(std::isfinite(figure) || options_.exit.performance_only,
                "the accuracy of the FP32 model is {}: nothing can be compared with it", figure);
    backend_.know_baseline(baseline_);
    if (options_.measured_baseline) options_.measured_baseline(baseline_);
}

Search::~Search() = default;

void Search::read_journal() {
    if (journal_ == nullptr) return;
    for (const std::string& text : journal_->records()) {
        const Record record = parse_record(text);
        const std::string type = record["type"].get<std::string>();
        if (record.contains("elapsed")) earlier_seconds_ = record["elapsed"].get<double>();
        if (type == "baseline")
            recorded_->baseline = outcome_from(record.at("outcome"));
        else if (type == "trial") {
            recorded_->trials[from_hex(record.at("key").get<std::string>())].push_back(
                outcome_from(record.at("outcome")));
            ++recorded_->left;
        } else if (type == "numbers")
            recorded_->numbers[record.at("name").get<std::string>()] = numbers_from(record.at("values"));
    }
}

double Search::elapsed() const { return earlier_seconds_ + (now() - started_); }

const Trial* Search::best() const { return best_ < 0 ? nullptr : &trials_[static_cast<size_t>(best_)]; }

const Trial* Search::best_or_nearest() const {
    if (best_ >= 0 || trials_.empty()) return best();
    // An accuracy over part of the samples says nothing, unless there is no other.
    return &*std::ranges::min_element(trials_, {}, [](const Trial& trial) {
        return std::pair(trial.outcome.rejected_early, trial.excess);
    });
}

int Search::trials_left() const {
    return std::max(0, options_.exit.max_trials - static_cast<int>(trials_.size()));
}

bool Search::stops_at_first() const {
    return options_.exit.timeout ? *options_.exit.timeout == 0 : !options_.ends_by_itself;
}

void Search::check_time() const {
    // What is in the journal costs no time: it is all read back before a budget that is spent ends the search.
    if (recorded_->left > 0) return;
    if (options_.exit.timeout && *options_.exit.timeout > 0 && elapsed() > *options_.exit.timeout)
        throw SearchOver{SearchOver::Why::timeout};
}

void Search::check_end() const {
    if (options_.exit.performance_only && !trials_.empty())
        throw SearchOver{SearchOver::Why::performance_only};
    if (best_ >= 0 && stops_at_first()) throw SearchOver{SearchOver::Why::success};
    if (trials_left() == 0) throw SearchOver{SearchOver::Why::trials};
    check_time();
}

Outcome Search::outcome_of(const Candidate& candidate, uint64_t key, const Trial& trial, bool complete) {
    if (const auto found = recorded_->trials.find(key);
        found != recorded_->trials.end() && !found->second.empty()) {
        Outcome outcome = std::move(found->second.front());
        found->second.pop_front();
        --recorded_->left;
        recorded_->replayed = true;
        return outcome;
    }
    recorded_->left = 0;
    recorded_->replayed = false;
    check_time();
    if (options_.starting) options_.starting(fmt::format("trial {}: {}", trial.number, trial.reason));
    const bool whole = complete || !options_.early_rejection || options_.exit.performance_only;
    Outcome outcome = backend_.evaluate(candidate, whole);
    if (journal_ == nullptr) return outcome;
    Trial done = trial;
    done.outcome = outcome;
    judge(done);
    Record record = to_record(done, space());
    record["elapsed"] = elapsed();
    journal_->append(line(record));
    return outcome;
}

void Search::judge(Trial& trial) {
    trial.excess = options_.criterion.excess(trial.outcome.accuracy, baseline_.accuracy);
    trial.met = !trial.outcome.rejected_early && trial.excess <= 0;
    trial.objective = options_.objective.value(trial.outcome.cost, trial.excess, baseline_.cost);
}

const Trial& Search::evaluate(const Candidate& candidate, std::string reason, bool complete) {
    const uint64_t key = space().key(candidate);
    const auto known = known_.find(key);
    if (known != known_.end()) {
        Trial& trial = trials_[known->second];
        if (!complete || !trial.outcome.rejected_early) return trial;
        trial.outcome = outcome_of(candidate, key, trial, true);
        settle(known->second);
        return trial;
    }
    check_end();
    Trial trial;
    trial.number = static_cast<int>(trials_.size()) + 1;
    trial.candidate = candidate;
    trial.reason = std::move(reason);
    trial.outcome = outcome_of(candidate, key, trial, complete);
    known_[key] = trials_.size();
    trials_.push_back(std::move(trial));
    settle(trials_.size() - 1);
    return trials_.back();
}

void Search::settle(size_t index) {
    Trial& done = trials_[index];
    judge(done);
    const bool accepted = done.met || options_.exit.performance_only;
    // Equal costs: the more accurate one; then the earlier one.
    const auto rank = [](const Trial& entry) { return std::pair(entry.objective, entry.excess); };
    if (accepted && (best_ < 0 || rank(done) < rank(*best()))) best_ = static_cast<int>(index);
    if (best_or_nearest() == &done && !recorded_->replayed) backend_.keep(done);
    if (options_.finished) options_.finished(done, best());
    check_end();
}

std::vector<double> Search::numbers(const std::string& name, const std::string& what,
                                    const std::function<std::vector<double>()>& measure) {
    if (const auto found = recorded_->numbers.find(name); found != recorded_->numbers.end())
        return found->second;
    if (!what.empty() && options_.starting) options_.starting(what);
    const std::vector<double> values = measure();
    if (journal_ != nullptr)
        journal_->append(line(
            {{"type", "numbers"}, {"name", name}, {"elapsed", elapsed()}, {"values", to_record(values)}}));
    recorded_->numbers[name] = values;
    return values;
}

std::vector<double> Search::scores(Scoring scoring, const Candidate& base) {
    std::vector<double> values = numbers(fmt::format("{}:{}", word(scoring), hex(space().key(base))),
                                         "scoring operators", [&] { return backend_.scores(scoring, base); });
    require(values.size() == space().operators.size(), "{} scores for {} operators", values.size(),
            space().operators.size());
    if (scoring == Scoring::restored) last_scores_ = values;
    return values;
}

std::vector<double> Search::gains() {
    last_gains_ = numbers("gains", "measuring what INT8 gains", [&] { return backend_.gains(); });
    require(last_gains_.size() == space().operators.size(), "{} gains for {} operators", last_gains_.size(),
            space().operators.size());
    return last_gains_;
}

double Search::output_error(const Candidate& candidate) {
    return numbers("error:" + hex(space().key(candidate)), "",
                   [&] { return std::vector{backend_.output_error(candidate)}; })
        .at(0);
}

}  // namespace kilter
