// Specialization: everything the engine can know about a graph once the shapes of its inputs are numbers.
// Shape arithmetic disappears here: what depends on shapes and constants only is computed now.
#pragma once

#include <vector>

#include "kilter/graph/graph.h"

namespace kilter::engine {

struct Specialized {
    std::vector<ValueType> types;    // by value id; static for everything `nodes` touch
    std::vector<Tensor> constants;   // by value id; empty where the value is computed at run time
    std::vector<const Node*> nodes;  // to execute, in order; all shapes known
    std::vector<const Node*>
        dynamic;  // executable after `nodes`, but their results' shapes are known only at run time
    std::vector<const Node*> rest;  // depend on results of `dynamic`
};

//! `input_types` are static. Throws Error where the shapes do not fit the graph.
Specialized specialize(const Graph& graph, const std::vector<ValueType>& input_types);

}  // namespace kilter::engine
