// What a study found, as text: a line for every trial, the table at the end, and the same as JSON.
#pragma once

#include <string>

#include "kilter/tuning/tune.h"

namespace kilter {

//! "Tune 3 result": accuracy, latency and size beside those of FP32, and whether the promise is kept.
std::string trial_text(const Trial& trial, const std::string& summary, const Outcome& baseline,
                       const Trial* best);
std::string baseline_text(const Outcome& baseline);

//! "Tune Result Statistics": FP32, the best and what was spared.
std::string result_text(const StudyResult& result);
std::string result_json(const TuneResult& result);

std::string sensitivity_text(const std::vector<Sensitivity>& rows);
std::string sensitivity_json(const std::vector<Sensitivity>& rows);

}  // namespace kilter
