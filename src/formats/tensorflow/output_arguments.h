// The output arguments of TensorFlow's operators: function bodies name a tensor by node, argument and place in it, graphs count.
#pragma once

#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

//! How many tensors come before those of this output argument; 0 for operators that have only one, or are not known.
//! Throws Error when the operator has no such argument.
int first_port(const TfNode& node, std::string_view argument);

}  // namespace kilter::tensorflow
