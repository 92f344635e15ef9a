// Every metric, one file each: the functions that make them. make_metric knows them by name.
#pragma once

#include "kilter/metrics/metric.h"

namespace kilter::metrics {

using Made = std::unique_ptr<Metric>;

Made make_topk(const Settings& settings);
Made make_accuracy(const Settings& settings);

}  // namespace kilter::metrics
