// Function calls replaced by the bodies of the functions.
#pragma once

#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

//! PartitionedCall, StatefulPartitionedCall and nodes whose operator is a function become the function's nodes, named
//! "call/node". Calls of unknown functions stay. Throws Error when a call does not fit, or calls never end.
void inline_functions(TfGraph& graph);

//! Names of an operator's outputs in order, where it has more than one name; empty otherwise.
std::vector<std::string_view> output_names(std::string_view op);

}  // namespace kilter::tensorflow
