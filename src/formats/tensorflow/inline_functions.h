// Function calls replaced by the bodies of the functions.
#pragma once

#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

//! PartitionedCall, StatefulPartitionedCall and nodes whose operator is a function become the function's nodes, named
//! "call/node". Calls of unknown functions stay. Throws Error when a call does not fit, or calls never end. What nobody reads, and
//! the tensors of `keep` ("call:1"), can still be had under the name of the call.
void inline_functions(TfGraph& graph, std::span<const std::string> keep = {});
//! Is it one of these nodes, whose function is known?
bool is_call(const TfGraph& graph, const TfNode& node);

}  // namespace kilter::tensorflow
