// The part of verification that needs no operator schemas: links, names, sources of values, acyclicity,
// declared types.
#pragma once

#include "kilter/graph/graph.h"

namespace kilter {

//! Throws Error that says what is wrong and where. Looks into sub-graphs; `parent` is the graph around
//! this one, or null.
void verify_structure(const Graph& graph, const Graph* parent = nullptr);

}  // namespace kilter
