// Criterion: the promise a tuned model has to keep. Objective: what is to be made small among those that keep it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kilter {

//! One number for each metric of a study.
using Accuracy = std::vector<double>;

//! At most `loss` worse than FP32, as a share of the FP32 figure or in the unit of the metric. The share is one of the magnitude:
//! with a baseline of -2 and 1 %, -2.02 passes; with a baseline of zero nothing worse than zero does. Limits are inclusive, a
//! negative loss demands an improvement.
struct Criterion {
    bool relative = true;
    double loss = 0.01;
    std::vector<bool> higher_is_better{true};  // one for each metric
    std::vector<double> weights;  // empty: every metric has to pass; otherwise their weighted mean does

    //! The worst value of metric `index` that passes.
    double limit(const Accuracy& baseline, size_t index = 0) const;
    //! How far the worst metric (or the weighted mean) is beyond the limit, as a share of the baseline's magnitude; the promise is
    //! kept when this is not positive. Throws Error when the numbers of metrics differ.
    double excess(const Accuracy& accuracy, const Accuracy& baseline) const;
    bool met(const Accuracy& accuracy, const Accuracy& baseline) const {
        return excess(accuracy, baseline) <= 0;
    }
    //! "1%", "0.01", "abs:0.5": a relative loss, or an absolute one. Throws Error.
    static Criterion parse(std::string_view text);
    std::string text() const;
};

//! What running a model costs. Zero stands for "not measured".
struct Cost {
    double milliseconds = 0;  // median time of one run
    double bytes = 0;         // of the model's constants
    double memory = 0;        // bytes of activations one run needs
    bool operator==(const Cost&) const = default;
};

//! A weighted sum of costs, each as a share of the FP32 model's.
struct Objective {
    enum class What { performance, modelsize, footprint, accuracy };
    struct Part {
        What what = What::performance;
        double weight = 1;
    };
    std::vector<Part> parts{{}};

    //! Lower is better; costs of FP32 are 1. `excess` is that of the accuracy over the criterion.
    double value(const Cost& cost, double excess, const Cost& baseline) const;
    bool reads(What what) const;
    //! "performance", "modelsize", "performance=0.7,footprint=0.3". Throws Error listing the words.
    static Objective parse(std::string_view text);
    std::string text() const;
};
std::string_view name(Objective::What what);

}  // namespace kilter
