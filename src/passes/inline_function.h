// Replaces a call of a local function by the operators of its body.
#pragma once

#include <vector>

#include "kilter/graph/graph.h"

namespace kilter {

//! Attribute references of the body take the values of the call, or the function's defaults. Returns the new
//! nodes in
//! topological order; `call` is left without outputs, for the caller to remove.
std::vector<Node*> inline_function(Graph& graph, Node& call, const Function& function);

}  // namespace kilter
