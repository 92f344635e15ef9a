// Metric: how good the outputs of a model are, judged batch by batch against what is true.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kilter/base/error.h"
#include "kilter/base/settings.h"
#include "kilter/data/sample.h"

namespace kilter {

//! What metrics throw when outputs hold NaN: it is the model that is wrong, not the data.
struct NotANumber : Error {
    using Error::Error;
};

class Metric {
  public:
    virtual ~Metric() = default;
    //! Forgets everything it saw.
    virtual void reset() = 0;
    //! Outputs of one run, whose first axis counts samples, and what is true of each of these.
    //! Throws Error when they do not fit what the metric expects.
    virtual void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) = 0;
    //! Over everything since reset(). Throws Error when there was nothing.
    virtual double result() const = 0;
    virtual bool higher_is_better() const { return true; }
    //! What each sample contributed, in the order of update(), when result() is their mean; empty for other metrics.
    //! With bounds(), this is what lets a trial be rejected before all samples were seen.
    virtual std::vector<double> per_sample() const { return {}; }
    //! The interval every value of per_sample() lies in; infinite when there is no bound.
    virtual std::pair<double, double> bounds() const;
    //! Must labels hold what the FP32 model answered, under reference_entry()?
    virtual bool needs_reference() const { return false; }
};

//! Under which name a label holds what FP32 gave for an output.
std::string reference_entry(int64_t output);

//! A metric by its name in configurations (topk, Accuracy, F1, …) and its settings. Throws Error that lists the names.
std::unique_ptr<Metric> make_metric(const Component& component);
std::vector<std::string> metric_names();

}  // namespace kilter
