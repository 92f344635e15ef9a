// Evaluation: how accurate a program is, by metrics over samples or by a function of the user's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kilter/data/sample.h"
#include "kilter/engine/program.h"
#include "kilter/metrics/metric.h"
#include "kilter/tuning/criterion.h"

namespace kilter {

struct QuantizedModel;

//! The next batch, or nothing at the end.
using BatchSource = std::function<std::optional<Batch>()>;

//! When a run may end before all samples were seen: `baseline` holds what each sample contributed with FP32, in the same order, and
//! the run ends once the mean loss against it cannot be `allowed_loss` or less any more, but for one time in `doubt`.
struct Rejection {
    const std::vector<double>* baseline = nullptr;
    double allowed_loss = 0;
    bool higher_is_better = true;
    double low = 0, high = 1;  // bounds of what a sample can contribute
    double doubt = 1000;
};

struct EvaluationRun {
    Accuracy accuracy;
    std::vector<double> per_sample;  // of the only metric, when it has such; in the order of the samples
    int64_t samples = 0;
    bool rejected = false;
};

class Evaluation {
  public:
    virtual ~Evaluation() = default;
    //! Threads that programs given to run() should have; 0: all cores.
    virtual int threads() const { return 0; }
    virtual std::vector<bool> higher_is_better() const = 0;
    //! Bounds of per_sample; infinite when unknown.
    virtual std::pair<double, double> bounds() const;
    //! `rejection` may be null.
    virtual EvaluationRun run(const Program& program, const Rejection* rejection) = 0;
    //! The same for a quantized model, which `program` runs; an evaluation may run it elsewhere.
    virtual EvaluationRun run_candidate(const QuantizedModel& /*candidate*/, const Program& program,
                                        const Rejection* rejection) {
        return run(program, rejection);
    }
    //! Metrics that compare with what FP32 gave need to know it before any run.
    virtual bool needs_reference() const { return false; }
    virtual void set_reference(const Program& /*fp32*/) {}
    //! Of the data, to tell when it has changed; 0 when that cannot be known.
    virtual uint64_t fingerprint() { return 0; }
    //! What the metrics were made from, as far as that is known.
    virtual std::vector<Component> metrics() const { return {}; }
};

struct EvaluationOptions {
    int instances = 0;  // programs of one thread side by side; 0: one per core; 1: one program with all cores
    size_t memory =
        size_t{2}
        << 30;  // samples are kept in memory up to this many bytes, and read anew for every run beyond
    //! What the metrics were made from: a study that is resumed must have the same ones.
    std::vector<Component> metrics;
    //! Called between batches, with the samples done; may throw to end the evaluation.
    std::function<void(int64_t samples)> progress;
};

//! `open` starts the samples from the beginning; for early rejection their order should be random (a seeded shuffle).
std::unique_ptr<Evaluation> evaluate_with(std::function<BatchSource()> open,
                                          std::vector<std::unique_ptr<Metric>> metrics,
                                          EvaluationOptions options = {});

//! A function that returns one figure, or several.
std::unique_ptr<Evaluation> evaluate_with(std::function<Accuracy(const Program&)> function,
                                          std::vector<bool> higher_is_better = {true});

}  // namespace kilter
