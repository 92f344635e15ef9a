// Search: what a strategy works with. It evaluates candidates, keeps every trial in the journal, knows the best one and ends the
// search when the exit policy says so. Backend: what evaluating means; the tuner's own quantizes and runs a model.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "kilter/tuning/criterion.h"
#include "kilter/tuning/space.h"

namespace kilter {

//! What one evaluation found out.
struct Outcome {
    Accuracy accuracy;
    int64_t samples = 0;          // evaluated; less than all when it was rejected early
    bool rejected_early = false;  // could not have met the criterion any more
    Cost cost;
    double seconds = 0;
    //! Of the baseline: what each sample contributed, when the metric is a mean. Trials are compared with it.
    std::vector<double> per_sample;
    bool operator==(const Outcome&) const = default;
};

struct Trial {
    int number = 0;  // from 1
    Candidate candidate;
    std::string reason;  // why the strategy tried it
    Outcome outcome;
    double excess = 0;  // of the accuracy over the criterion; not positive: the promise is kept
    bool met = false;
    double objective = 0;  // lower is better
};

//! What the error of each operator does to the model. Scores are in the order of the space; operators without integer options
//! have none (0).
enum class Scoring {
    restored,  // how much smaller the error of the model's outputs gets when the operator alone returns to floating point
    own,  // error of the operator's own result, as a share of its signal
};

class Backend {
  public:
    virtual ~Backend() = default;
    virtual const Space& space() const = 0;
    virtual Outcome baseline() = 0;
    //! Told before any trial, whether baseline() was called or an earlier session's is used.
    virtual void know_baseline(const Outcome& /*baseline*/) {}
    //! A run may stop early (Outcome::rejected_early) when it can no longer meet the criterion, unless `complete` is asked for.
    virtual Outcome evaluate(const Candidate& candidate, bool complete) = 0;
    virtual std::vector<double> scores(Scoring scoring, const Candidate& base) = 0;
    //! Error of the model's outputs against FP32 on the calibration samples; cheap, and enough to compare candidates.
    virtual double output_error(const Candidate& candidate) = 0;
    //! What each operator gains by running on integers, as shares of the FP32 model's cost by the objective.
    virtual std::vector<double> gains() = 0;
    //! Called when a trial becomes the best one, so that it can be put on the disk.
    virtual void keep(const Trial& /*best*/) {}
};

struct ExitPolicy {
    //! Seconds; 0: stop at the first success; nothing: strategies that end by themselves do, others stop at the first success.
    std::optional<double> timeout;
    int max_trials = 100;
    bool performance_only = false;  // take the first trial, whatever its accuracy
};

//! Thrown through a strategy when its search is over. No error.
struct SearchOver {
    enum class Why { success, trials, timeout, performance_only } why;
};

class Journal;

class Search {
  public:
    struct Options {
        Criterion criterion;
        Objective objective;
        ExitPolicy exit;
        uint64_t seed = 1978;
        bool ends_by_itself = false;  // of the strategy
        bool early_rejection = true;
        //! Told before and after every trial.
        std::function<void(const std::string& what)> starting;
        std::function<void(const Trial& trial, const Trial* best)> finished;
        std::function<void(const Outcome& baseline)> measured_baseline;
    };

    //! Evaluates the baseline, unless the journal has it. `journal` may be null: then nothing is kept.
    Search(Backend& backend, Journal* journal, Options options);
    ~Search();

    const Space& space() const { return backend_.space(); }
    const Outcome& baseline() const { return baseline_; }
    const Criterion& criterion() const { return options_.criterion; }
    const std::deque<Trial>& trials() const { return trials_; }
    //! The best trial that keeps the promise; null when there is none yet.
    const Trial* best() const;
    //! The best one, or, when none keeps the promise, the most accurate one; null before the first trial.
    const Trial* best_or_nearest() const;
    //! Seeded; strategies take all their randomness from here.
    std::mt19937_64& random() { return random_; }
    //! Trials that may still be made.
    int trials_left() const;

    //! Evaluates a candidate; one that was evaluated before gives the same trial again and counts only once. Throws SearchOver when
    //! the search is to end, before or after a trial. With `complete`, it is never rejected early: its accuracy is exact.
    //! The reference stays valid as long as the search.
    const Trial& evaluate(const Candidate& candidate, std::string reason, bool complete = false);
    //! These are asked of the backend once, and kept in the journal.
    std::vector<double> scores(Scoring scoring, const Candidate& base);
    std::vector<double> gains();
    double output_error(const Candidate& candidate);
    //! What scores(Scoring::restored) and gains() gave last; empty when nobody asked. For explaining a result.
    const std::vector<double>& last_scores() const { return last_scores_; }
    const std::vector<double>& last_gains() const { return last_gains_; }

    //! Ends the search when there is no time left.
    void check_time() const;
    //! Seconds this study has taken, earlier sessions included.
    double elapsed() const;

  private:
    void read_journal();
    //! What the journal has under this name, or what `measure` gives.
    std::vector<double> numbers(const std::string& name, const std::string& what,
                                const std::function<std::vector<double>()>& measure);
    void check_end() const;
    bool stops_at_first() const;
    Outcome outcome_of(const Candidate& candidate, uint64_t key, const Trial& trial, bool complete);
    void judge(Trial& trial);
    void settle(size_t index);  // a trial that has its outcome: is it the best, and does that end the search?

    Backend& backend_;
    Journal* journal_;
    Options options_;
    std::mt19937_64 random_;
    Outcome baseline_;
    std::deque<Trial> trials_;  // references stay valid
    std::unordered_map<uint64_t, size_t> known_;
    int best_ = -1;
    std::vector<double> last_scores_, last_gains_;
    struct Recorded;
    std::unique_ptr<Recorded> recorded_;  // what the journal had
    double earlier_seconds_ = 0, started_ = 0;
};

}  // namespace kilter
