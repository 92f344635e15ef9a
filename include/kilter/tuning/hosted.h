// Hosted tuning: another framework runs the model, observes it and says how accurate a candidate is; kilter chooses. Strategies,
// journal and criterion are those of tune(). What tune() measures by running operators is estimated here: an operator's error from
// the ranges and histograms of what it reads and from the rounding of its weights, its gain from its multiplications.
#pragma once

#include "kilter/tuning/tune.h"

namespace kilter {

struct HostedOperator {
    OperatorPlan plan;  // as it is wanted most: on integers; its type is one that capabilities() lists
    double multiplications = 0;  // of one sample, or anything in proportion to them
    double weight_bytes = 0;     // in FP32
};

struct HostedRun {
    Accuracy accuracy;
    double milliseconds = 0;  // of one run; 0: not measured
    int64_t samples = 0;      // evaluated; 0: not known
};

class Host {
  public:
    virtual ~Host() = default;
    //! Everything that can be chosen, in the order of the model. Asked once.
    virtual std::vector<HostedOperator> operators() = 0;
    //! Of the FP32 model's constants.
    virtual double bytes() const = 0;
    //! Evaluates what a plan means; null: the FP32 model. May throw; that ends the search.
    virtual HostedRun run(const Plan* plan) = 0;
    //! Error of each operator's result as a share of its signal, with what the plan says; 0 in floating point. In the order of
    //! operators().
    virtual std::vector<double> noise(const Plan& plan) = 0;
    //! A plan that became the best one of a study in `workspace`.
    virtual void keep(const Plan& /*plan*/, const std::filesystem::path& /*workspace*/) {}
    //! Of the model, and of what its ranges were learnt from: a study that is resumed must be about the same.
    virtual uint64_t fingerprint() = 0;
    virtual uint64_t calibration_fingerprint() = 0;
};

struct HostedResult : StudyResult {
    Plan plan;
};

//! As tune(). The first number of TuneOptions::samples is how many samples the host calibrated with; recipes, scoring_samples and
//! memory are not read, and no trial is rejected early. Throws Error, and lets what the host throws pass.
HostedResult tune_hosted(Host& host, TuneOptions options = {});

}  // namespace kilter
