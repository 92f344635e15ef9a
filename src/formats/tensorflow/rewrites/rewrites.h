// Rewrites of TensorFlow graphs, one file each. All keep the function of the graph and the names of its inputs and outputs;
// what they leave without readers is removed. Each says how many places it changed.
#pragma once

#include <span>
#include <string>
#include <unordered_set>

#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

//! Names of nodes whose results are wanted as they are: outputs of the graph. Rewrites may replace what computes them.
using Wanted = std::unordered_set<std::string>;

//! Keeps what the outputs need. Inputs that are no placeholders become some. Names are those of nodes ("name" or "name:0");
//! throws Error when one does not exist.
int strip_unused(TfGraph& graph, std::span<const std::string> inputs, std::span<const std::string> outputs);

//! Takes out what only training or debugging needs: Identity and its like, CheckNumerics, Assert, Print, and branches that
//! Keras' learning phase (false at inference; a placeholder that is not among `inputs`) switches off.
int remove_training_nodes(TfGraph& graph, std::span<const std::string> inputs, const Wanted& wanted);

//! Conv2D|DepthwiseConv2dNative|MatMul [→ BiasAdd] → batch normalization with constant statistics, in any of its
//! spellings: FusedBatchNorm, V2, V3, BatchNormWithGlobalNormalization, or exploded to Mul and Add|Sub of constants.
int fold_batch_norms(TfGraph& graph, const Wanted& wanted);

//! BiasAdd|Add(Mul(RealDiv(Sub(Conv2D, mean), deviation), gamma), beta), all constant.
int fold_subdivmul_batch_norms(TfGraph& graph, const Wanted& wanted);

//! Add|AddN(x, Mul(BiasAdd(Conv2D), scalar)): the scalar goes into weights and bias, so that the sum can be fused.
int fold_convolutionwithbias_mul(TfGraph& graph, const Wanted& wanted);

//! Conv2D|DepthwiseConv2dNative|MatMul → Mul(constant vector): scales the columns of the weights.
int fuse_column_wise_mul(TfGraph& graph, const Wanted& wanted);

//! Pad(zeros) → Conv2D|DepthwiseConv2dNative with VALID or EXPLICIT padding: the convolution pads by itself.
int mkl_fuse_pad_and_conv(TfGraph& graph, const Wanted& wanted);

//! BatchMatMul(x, constant matrix): a MatMul between two Reshapes. Then Reshape(MatMul) → BiasAdd|Add(vector), and → GELU: the Reshape comes
//! last.
int flatten_batch_products(TfGraph& graph, const Wanted& wanted);

//! A constant that several convolutions or products read gets a copy for each, called NAME_2, NAME_3, …
int split_shared_inputs(TfGraph& graph);

//! QuantizedConv2D…|_FusedQuantized… with a result of 32 bits → Requantize|RequantizePerChannel to constant ranges:
//! one operator that stores 8 bits. A signed summand is made unsigned: TensorFlow's kernel adds signed ones wrongly.
int fuse_quantized_conv_and_requantize(TfGraph& graph, const Wanted& wanted);

//! QuantizedConcatV2 whose inputs are requantized to different constant ranges: all get the widest.
int rerange_quantized_concat(TfGraph& graph);

//! All rewrites of FP32 graphs in their order, until nothing changes. What quantization starts from.
void optimize_for_quantization(TfGraph& graph, std::span<const std::string> inputs,
                               std::span<const std::string> outputs);

}  // namespace kilter::tensorflow
