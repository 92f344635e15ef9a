// Precision bf16: the operator between two casts.
#pragma once

#include "kilter/graph/graph.h"

namespace kilter {

//! Floating-point inputs are cast (constants are stored so), the result is cast back to f32.
void convert_to_bf16(Graph& graph, Node& node);

}  // namespace kilter
