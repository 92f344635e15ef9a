// Shapes of the tensors of a TensorFlow graph, as far as convolutional networks need them. Sizes that only a run tells are
// symbols, and equal computations on equal symbols give the same symbol: two branches of a network can be compared.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

//! Sizes; negative numbers are symbols.
using SymbolicShape = std::vector<int64_t>;
//! By name of the node whose first output it is; nodes that are not understood are missing.
using SymbolicShapes = std::map<std::string, SymbolicShape>;

SymbolicShapes symbolic_shapes(const TfGraph& graph);

}  // namespace kilter::tensorflow
