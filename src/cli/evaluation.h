// How tune and eval measure accuracy: samples with labels, and metrics.
#pragma once

#include "cli/samples.h"
#include "kilter/tuning/job.h"

namespace kilter::cli {

struct EvaluationArguments {
    SampleArguments samples;
    std::vector<std::string> metrics;  // topk, topk:5, F1:average=macro
    int instances = 0;

    //! Samples in random order, metrics by their names. Throws CLI::ValidationError or Error.
    std::unique_ptr<Evaluation> make(const std::vector<Port>& inputs, uint64_t seed,
                                     std::function<void(int64_t samples)> progress) const;
    //! The same beside a configuration, which says what was not said here.
    std::unique_ptr<Evaluation> make(const Config& config, const std::vector<Port>& inputs, uint64_t seed,
                                     std::function<void(int64_t samples)> progress) const;
    int64_t batch(const std::vector<Port>& inputs) const;
};

void add_evaluation_options(CLI::App& command, EvaluationArguments& arguments,
                            const std::string& samples_help);

//! "topk:5" is what `topk: {k: 5}` is in a configuration: after a colon comes the main setting, or KEY=VALUE,KEY=VALUE.
Component parse_metric(const std::string& text);

}  // namespace kilter::cli
