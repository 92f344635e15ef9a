// From a configuration to a tuning job: samples, metrics and options as tune() takes them.
#pragma once

#include "kilter/config/config.h"
#include "kilter/data/loader.h"
#include "kilter/tuning/tune.h"

namespace kilter {

//! What a configuration says about the search. Which metrics there are is not part of it.
TuneOptions tune_options(const Config& config);

//! Batches of a loader, from the beginning every time; at most `most` of them (-1: all).
std::function<BatchSource()> batches_of(std::shared_ptr<Loader> loader, int64_t most = -1);

//! The samples a configuration names, as batches. `inputs` are those of the model. Throws Error when it names none.
std::shared_ptr<Loader> calibration_loader(const Config& config, const std::vector<Port>& inputs);
std::shared_ptr<Loader> evaluation_loader(const Config& config, const std::vector<Port>& inputs);

std::vector<std::unique_ptr<Metric>> make_metrics(const Config& config);
std::vector<Component> asked_metrics(const Config& config);

//! By the metrics and the samples of the configuration.
std::unique_ptr<Evaluation> make_evaluation(const Config& config, const std::vector<Port>& inputs,
                                            EvaluationOptions options = {});

//! Samples of a batch when nobody says: what the inputs fix, otherwise a few, so that threads have something to share.
int64_t default_batch(const std::vector<Port>& inputs);

}  // namespace kilter
