// Micro-batches: a large batch runs in slices whose activations stay in the caches, and side by side on
// the threads, when its samples do not see each other.
#pragma once

#include "engine/specialize.h"

namespace kilter::engine {

struct Slicing {
    int64_t size = 0;  // samples to run at a time: a divisor of the batch, or the whole batch
    int lanes =
        1;  // so many slices run side by side, each on a thread of its own; 1: one after the other, on all threads
};

//! How to run a batch. It stays whole when there is none, when samples depend on each other, or when that cannot be
//! shown. `known` is the graph specialized for the whole batch.
Slicing micro_batch(const Graph& graph, const Specialized& known, int threads);

}  // namespace kilter::engine
