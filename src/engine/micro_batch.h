// Micro-batches: a large batch runs in slices whose activations stay in the caches, when its samples do not see each other.
#pragma once

#include "engine/specialize.h"

namespace kilter::engine {

//! How many samples to run at a time: a divisor of the batch, or the whole batch (also when there is none, when samples
//! depend on each other, or when that cannot be shown). `known` is the graph specialized for the whole batch.
int64_t micro_batch(const Graph& graph, const Specialized& known, int threads);

}  // namespace kilter::engine
