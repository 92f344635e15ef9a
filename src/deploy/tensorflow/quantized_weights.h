// Weights as the integer operators of TensorFlow take them: signed bytes, symmetric, one scale per output channel or one.
#pragma once

#include <vector>

#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

struct QuantizedWeights {
    Tensor bytes;                     // i8; [H,W,I,O], [H,W,C,M] or [K,N]
    std::vector<float> limits;        // largest magnitude: per output channel, or one
    std::vector<double> channel_sum;  // of the values the bytes stand for, per output channel
};

//! `product` is a Conv2D, DepthwiseConv2dNative or MatMul with constant weights; a transposed matrix is turned. With fewer than
//! eight bits the bytes stay that much smaller, and the limits are where 127 would lie. Limits are not below `least`, per channel.
QuantizedWeights quantize_weights(const TfGraph& graph, const TfNode& product, bool per_channel, int bits = 8,
                                  const std::vector<float>& least = {});

}  // namespace kilter::tensorflow
