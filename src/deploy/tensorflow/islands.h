// What of a TensorFlow graph runs on integers: convolutions and products with what is fused into them, and the pools,
// concatenations and reshapes between them. Found first, so that it is known which tensors need a range; decided when
// the ranges are there.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/tensorflow/tf_graph.h"
#include "kilter/deploy/tensorflow.h"

namespace kilter::tensorflow {

struct IslandOptions {
    std::vector<std::string> inputs, outputs;
    std::vector<std::string> excluded_ops, excluded_nodes;
    Choices choices;
};

//! What can run on bytes between integer operators: MaxPool, AvgPool, ConcatV2, Reshape, Squeeze, Pad.
bool is_passive(const TfNode& node);
//! How many of its first inputs are tensors, not shapes or axes.
size_t passive_tensors(const TfNode& passive);

//! A convolution or product, and the nodes behind it that one integer operator does along with it.
struct Fused {
    TfNode* product = nullptr;
    TfNode* bias = nullptr;        // a constant vector is added
    TfNode* sum = nullptr;         // another tensor of the same shape is added
    TfInput summand;               // that tensor
    TfNode* activation = nullptr;  // Relu, Relu6; behind MatMul Tanh, Sigmoid and GELU too
    std::string curve;             // how TensorFlow's kernels call the activation
    std::vector<TfNode*> inside;   // nodes that are part of the activation, before its last

    TfNode& last() const;
    std::vector<TfNode*> nodes() const;
};

struct Islands {
    std::vector<Fused> fused;
    std::set<TfNode*> passive;
    //! Why nodes that could be quantized in principle are not: name, reason.
    std::vector<std::pair<std::string, std::string>> left_out;
};

//! Takes out of `passive` what does not lie between integer operators: every input must come from one, a reader be one.
void prune_passive(TfGraph& graph, Islands& islands);
//! Everything that could run on integers. `graph` has been through optimize_for_quantization.
Islands find_islands(TfGraph& graph, const IslandOptions& options);
//! The tensors whose ranges decide. Sorted.
std::vector<std::string> tensors_to_observe(const Islands& islands);

}  // namespace kilter::tensorflow
