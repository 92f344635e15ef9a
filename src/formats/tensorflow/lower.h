// From a TfGraph to a Model: nodes become operators with ONNX meaning, under their TensorFlow names.
#pragma once

#include <string>
#include <vector>

#include "formats/tensorflow/tf_graph.h"
#include "kilter/graph/graph.h"

namespace kilter::tensorflow {

//! Domain of the operators that stay what they were: nodes for which kilter has no meaning. They load, print and are
//! written, but they do not run.
inline constexpr std::string_view kOpaqueDomain = "tensorflow";

struct LowerOptions {
    //! Tensors ("name", "name:1") that are fed; empty: all placeholders that the outputs need.
    std::vector<std::string> inputs;
    //! Tensors that are wanted; empty: all outputs that nobody reads.
    std::vector<std::string> outputs;
};

//! What lies between the inputs and the outputs. Throws Error when a name does not exist, or when the outputs need a
//! placeholder that is not among the inputs.
Model lower(const TfGraph& graph, const LowerOptions& options = {});

//! The type of a tensor inside of a graph: what the nodes before it would make, or what those behind ask for.
ValueType inner_type(const TfGraph& graph, const TfInput& tensor);

//! Outputs of a graph as summarize_graph finds them: nodes that nobody reads and that compute something.
std::vector<const TfNode*> possible_outputs(const TfGraph& graph);

}  // namespace kilter::tensorflow
