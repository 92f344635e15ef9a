// From statistics to ranges: every operator chooses by its own algorithm for the tensor it reads.
#pragma once

#include "deploy/tensorflow/islands.h"
#include "kilter/calibration/stats.h"

namespace kilter::tensorflow {

//! Throws Error when a tensor that is needed has no statistics.
Ranges choose_ranges(TfGraph& graph, const Islands& islands, const Choices& choices, const Stats& stats);

}  // namespace kilter::tensorflow
