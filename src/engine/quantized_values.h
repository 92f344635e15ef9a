// Which real numbers the integers of a lowered graph stand for.
#pragma once

#include <unordered_map>

#include "kilter/graph/graph.h"

namespace kilter::engine {

struct AffineMap {
    float scale = 1;
    int64_t zero_point = 0;
};

//! Scale and zero point of every 8-bit value of a graph that they are known of: from the operators that make or read it,
//! and through operators that only move integers.
std::unordered_map<const Value*, AffineMap> affine_maps(const Graph& graph);

}  // namespace kilter::engine
