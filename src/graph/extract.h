// Cutting a part out of a graph.
#pragma once

#include <vector>

#include "kilter/graph/graph.h"

namespace kilter {

//! Values a node reads, directly or from inside its sub-graphs; absent inputs are left out.
std::vector<Value*> values_read(const Node& node);

//! A graph of copies of `nodes` (in topological order). `inputs` become its inputs, `outputs` its outputs, both in order
//! and under their names; constants come along.
Graph extract(const Graph& graph, const std::vector<const Node*>& nodes,
              const std::vector<const Value*>& inputs, const std::vector<const Value*>& outputs);

}  // namespace kilter
