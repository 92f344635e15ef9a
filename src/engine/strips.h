// Strips: a convolution, the depthwise one behind it and the 1x1 behind that run together, a few rows at a time, so that
// the wide activations between them stay in the cache of the core that made them. Neighbouring strips compute shared rows twice.
#pragma once

#include <vector>

#include "engine/specialize.h"

namespace kilter::engine {

class Builder;

struct StripChain {
    std::vector<const Node*> nodes;  // each reads the result of the one before, which nobody else reads
    int64_t strips = 1;              // per image, all threads together
};

//! The chains of a graph that are worth it with so many threads, in the order of their last nodes.
std::vector<StripChain> find_strip_chains(const Graph& graph, const Specialized& known, int threads);

//! Adds the step for a chain; the current node is the last of the chain.
void build_strips(Builder& builder, const StripChain& chain);

}  // namespace kilter::engine
