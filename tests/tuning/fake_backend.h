// A synthetic model for the tests of the search: every operator on integers costs a known accuracy and gains a known time, so the
// best candidate is known beforehand. Counts what it is asked.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>

#include "kilter/base/error.h"
#include "kilter/tuning/strategy.h"

namespace kilter::testing {

//! A plan of operators of these types, called op0, op1, …, all on integers.
inline Plan plan_of(const std::vector<std::string>& types) {
    Plan plan;
    for (size_t i = 0; i < types.size(); ++i) {
        OperatorPlan entry;
        entry.name = fmt::format("op{}", i);
        entry.op = types[i];
        plan.operators.push_back(entry);
    }
    return plan;
}

//! Operators of these types that are either on integers or in f32.
inline Space two_way_space(const std::vector<std::string>& types) {
    SpaceRule rule;
    rule.algorithms = {RangeAlgorithm::minmax};
    return make_space(plan_of(types), {rule});
}
inline Space two_way_space(size_t count) { return two_way_space(std::vector<std::string>(count, "Conv")); }

//! The candidate of a space with these operators in floating point, the others at their first option.
inline Candidate floats(const Space& space, const std::vector<size_t>& indices) {
    Candidate candidate = space.first();
    for (const size_t index : indices) candidate.options[index] = space.operators[index].first_float();
    return candidate;
}

//! The operators of a candidate that are not on integers.
inline std::vector<size_t> floats_of(const Space& space, const Candidate& candidate) {
    std::vector<size_t> found;
    for (size_t i = 0; i < space.operators.size(); ++i)
        if (!space.is_quantized(candidate, i)) found.push_back(i);
    return found;
}

class FakeBackend : public Backend {
  public:
    //! Every operator on integers loses `losses` of the accuracy, whatever its option.
    FakeBackend(Space space, std::vector<double> losses)
        : losses(std::move(losses)),
          gain(space.operators.size(), 0.5 / static_cast<double>(space.operators.size())),
          space_(std::move(space)) {}

    std::vector<double> losses;
    std::vector<double> gain;        // of each operator on integers, as a share of the FP32 model's time
    std::vector<double> own_errors;  // for Scoring::own; empty: the losses
    std::function<double(const Candidate&)> extra_loss;            // options, variants, interactions
    std::function<double(const Candidate&)> error_on_calibration;  // empty: the loss
    double baseline_accuracy = 1;
    bool higher_is_better = true;
    std::function<bool(double loss)> rejects;  // with what loss an evaluation that need not be complete stops
    int throws_at = 0;                         // the evaluation that fails, counted from 1

    int baselines = 0, scorings = 0, errors = 0, gainings = 0;
    std::vector<Candidate> evaluated;
    std::vector<bool> were_complete;
    std::vector<int> kept;  // numbers of the trials

    double loss(const Candidate& candidate) const {
        double sum = extra_loss ? extra_loss(candidate) : 0;
        for (size_t i = 0; i < losses.size(); ++i)
            if (space_.is_quantized(candidate, i)) sum += losses[i];
        return sum;
    }
    Cost cost(const Candidate& candidate) const {
        double milliseconds = 10;
        for (size_t i = 0; i < gain.size(); ++i)
            if (space_.is_quantized(candidate, i)) milliseconds -= 10 * gain[i];
        return {milliseconds, 1000, 100};
    }

    Space& editable_space() { return space_; }
    const Space& space() const override { return space_; }
    Outcome baseline() override {
        ++baselines;
        return {{baseline_accuracy}, 100, false, {10, 4000, 100}, 0.25, {}};
    }
    Outcome evaluate(const Candidate& candidate, bool complete) override {
        evaluated.push_back(candidate);
        were_complete.push_back(complete);
        if (static_cast<int>(evaluated.size()) == throws_at) throw std::runtime_error("the evaluation broke");
        const double lost = loss(candidate);
        Outcome outcome{
            {baseline_accuracy - (higher_is_better ? lost : -lost)}, 100, false, cost(candidate), 0.5, {}};
        if (!complete && rejects && rejects(lost)) {
            outcome.rejected_early = true;
            outcome.samples = 10;
        }
        return outcome;
    }
    std::vector<double> scores(Scoring scoring, const Candidate& base) override {
        ++scorings;
        if (scoring == Scoring::own && !own_errors.empty()) return own_errors;
        std::vector<double> scores(losses.size(), 0);
        for (const size_t index : space_.quantized(base)) {
            Candidate restored = base;
            restored.options[index] = space_.operators[index].first_float();
            scores[index] = scoring == Scoring::own ? losses[index] : error(base) - error(restored);
        }
        return scores;
    }
    double output_error(const Candidate& candidate) override {
        ++errors;
        return error(candidate);
    }
    std::vector<double> gains() override {
        ++gainings;
        return gain;
    }
    void keep(const Trial& best) override { kept.push_back(best.number); }

  private:
    double error(const Candidate& candidate) const {
        return error_on_calibration ? error_on_calibration(candidate) : loss(candidate);
    }

    Space space_;
};

//! Options for a strategy; the criterion is 1 % relative.
inline Search::Options options_for(const Strategy& strategy, std::optional<double> timeout = {},
                                   int max_trials = 1000) {
    Search::Options options;
    options.ends_by_itself = strategy.ends_by_itself();
    options.exit.timeout = timeout;
    options.exit.max_trials = max_trials;
    return options;
}

//! Runs a strategy to its end; why the search ended it, or nothing when it ended by itself.
inline std::optional<SearchOver::Why> run_to_end(Strategy& strategy, Search& search) {
    try {
        strategy.run(search);
    } catch (const SearchOver& over) {
        return over.why;
    }
    return {};
}

//! A strategy by name, run on a backend; what it did stays readable.
struct Ran {
    std::unique_ptr<Strategy> strategy;
    Search search;
    std::optional<SearchOver::Why> why;

    Ran(std::string_view name, FakeBackend& backend, std::optional<double> timeout = {},
        int max_trials = 1000)
        : Ran(name, backend, [&](Search::Options& options) {
              options.exit.timeout = timeout;
              options.exit.max_trials = max_trials;
          }) {}
    Ran(std::string_view name, FakeBackend& backend, const std::function<void(Search::Options&)>& edit,
        Journal* journal = nullptr)
        : strategy(make_strategy(name)),
          search(backend, journal,
                 [&] {
                     Search::Options options = options_for(*strategy);
                     edit(options);
                     return options;
                 }()),
          why(run_to_end(*strategy, search)) {}

    //! The operators in floating point, for each trial.
    std::vector<std::vector<size_t>> fallbacks() const {
        std::vector<std::vector<size_t>> all;
        for (const Trial& trial : search.trials()) all.push_back(floats_of(search.space(), trial.candidate));
        return all;
    }
};

//! A folder that is removed at the end of the test; in memory where there is such a place, for fsync takes its time on a disk.
class MemoryFolder {
  public:
    MemoryFolder() {
        namespace fs = std::filesystem;
        const fs::path memory("/dev/shm");
        const bool usable = ::access(memory.c_str(), W_OK) == 0;
        std::string pattern = ((usable ? memory : fs::temp_directory_path()) / "kilter-test-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw Error("cannot create a temporary folder");
        path_ = pattern;
    }
    ~MemoryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    MemoryFolder(const MemoryFolder&) = delete;
    MemoryFolder& operator=(const MemoryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

//! Message and hint of the Error that `function` throws.
inline std::string error_of(const std::function<void()>& function) {
    try {
        function();
    } catch (const Error& error) {
        return std::string(error.what()) + "; " + error.hint();
    }
    return "no error";
}

}  // namespace kilter::testing
