// Cutting a part out of a graph.
#pragma once

#include <vector>

#include "kilter/graph/graph.h"

namespace kilter {

//! Values a node reads, directly or from inside its sub-graphs; absent inputs are left out.
std::vector<Value*> values_read(const Node& node);

//! The value that a chain of captures stands for; `value` itself when it is none.
const Value* origin(const Value* value);

//! A graph of copies of `nodes` (in topological order). `inputs` become its inputs, `outputs` its outputs, both in order
//! and under their names; constants come along, also those that a sub-graph captures.
Graph extract(const Graph& graph, const std::vector<const Node*>& nodes,
              const std::vector<const Value*>& inputs, const std::vector<const Value*>& outputs);

}  // namespace kilter
