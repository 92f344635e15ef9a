#include "kilter/tuning/hosted.h"

#include <chrono>
#include <limits>
#include <numeric>

#include "base/fail.h"
#include "tuning/identity.h"
#include "tuning/study.h"

namespace kilter {
namespace hosted {
namespace {

// What integers save of an operator's time and of its weights' bytes, as a rule: products run about three times as fast, bytes
// are a quarter.
constexpr double kTimeSaved = 2.0 / 3;
constexpr double kBytesSaved = 3.0 / 4;

class HostedBackend : public Backend {
  public:
    HostedBackend(Host& host, const TuneOptions& options)
        : host_(host), options_(options), operators_(host.operators()) {
        Plan plan;
        plan.mode = options.quantize.mode;
        for (const HostedOperator& entry : operators_) plan.operators.push_back(entry.plan);
        apply_options(plan, options.quantize);
        space_ = make_space(plan, options.rules);
        require(!space_.operators.empty(), "the model has no operator that can be quantized");
        space_.variants.front().samples = options.samples.empty() ? 0 : options.samples.front();
    }

    const Space& space() const override { return space_; }

    Outcome baseline() override {
        tell("evaluating FP32");
        return outcome(nullptr, host_.bytes());
    }

    Outcome evaluate(const Candidate& candidate, bool /*complete*/) override {
        const Plan plan = space_.plan(candidate);
        double bytes = host_.bytes();
        for (size_t i = 0; i < operators_.size(); ++i)
            if (plan.operators[i].precision == Precision::int8)
                bytes -= kBytesSaved * operators_[i].weight_bytes;
        return outcome(&plan, bytes);
    }

    // Errors of operators add up, each in its share of the signal: to remove one takes away its own.
    std::vector<double> scores(Scoring /*scoring*/, const Candidate& base) override {
        return host_.noise(space_.plan(base));
    }

    double output_error(const Candidate& candidate) override {
        const std::vector<double> noise = host_.noise(space_.plan(candidate));
        return std::accumulate(noise.begin(), noise.end(), 0.0);
    }

    std::vector<double> gains() override {
        double multiplications = 0;
        for (const HostedOperator& entry : operators_) multiplications += entry.multiplications;
        std::vector<double> gains;
        for (const HostedOperator& entry : operators_) {
            double gain = 0;
            for (const Objective::Part& part : options_.objective.parts) {
                if (part.what == Objective::What::performance && multiplications > 0)
                    gain += part.weight * kTimeSaved * entry.multiplications / multiplications;
                if (part.what == Objective::What::modelsize && host_.bytes() > 0)
                    gain += part.weight * kBytesSaved * entry.weight_bytes / host_.bytes();
            }
            gains.push_back(gain);
        }
        return gains;
    }

    void keep(const Trial& best) override {
        if (!options_.workspace.empty()) host_.keep(space_.plan(best.candidate), options_.workspace);
    }

  private:
    void tell(const std::string& what) const {
        if (options_.progress.working) options_.progress.working(what, 0, 0);
    }

    Outcome outcome(const Plan* plan, double bytes) {
        const auto start = std::chrono::steady_clock::now();
        HostedRun run = host_.run(plan);
        Outcome outcome;
        outcome.accuracy = std::move(run.accuracy);
        outcome.samples = run.samples;
        outcome.cost.milliseconds = run.milliseconds;
        outcome.cost.bytes = bytes;
        outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return outcome;
    }

    Host& host_;
    const TuneOptions& options_;
    std::vector<HostedOperator> operators_;
    Space space_;
};

std::vector<Spared> spared_operators(const Search& search, const Candidate& candidate) {
    std::vector<Spared> spared;
    for (size_t i = 0; i < search.space().operators.size(); ++i) {
        const SpaceOperator& entry = search.space().operators[i];
        if (search.space().is_quantized(candidate, i)) continue;
        const bool could = entry.options.front().precision == Precision::int8;
        spared.push_back(
            {entry.name, entry.op, Precision::f32, could ? why_spared(search, i) : "the plan says f32"});
    }
    return spared;
}

Record study_record(Host& host, const TuneOptions& options) {
    return {{"type", "study"},
            {"version", 1},
            {"host", "another framework"},
            {"model", hex(host.fingerprint())},
            {"calibration", hex(host.calibration_fingerprint())},
            {"evaluation", hex(0)},
            {"settings", settings_record(options, {})},
            {"source", ""}};
}

}  // namespace
}  // namespace hosted

HostedResult tune_hosted(Host& host, TuneOptions options) {
    using namespace hosted;
    const std::unique_ptr<Strategy> strategy = make_strategy(options.strategy, options.strategy_settings);
    require(options.exit.max_trials > 0, "{} trials; expected at least one", options.exit.max_trials);
    HostedBackend backend(host, options);
    const std::unique_ptr<Journal> journal =
        open_study(options, options.workspace.empty() ? Record() : study_record(host, options));
    HostedResult result;
    static_cast<StudyResult&>(result) =
        run_study(backend, journal.get(), *strategy, options, [&](const Search& search, StudyResult& found) {
            result.plan = search.space().plan(found.best.candidate);
            found.spared = spared_operators(search, found.best.candidate);
            if (options.resume) backend.keep(found.best);  // whoever was killed may not have come that far
        });
    return result;
}

}  // namespace kilter
