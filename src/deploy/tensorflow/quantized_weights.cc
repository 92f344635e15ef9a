#include "deploy/tensorflow/quantized_weights.h"

#include <algorithm>
#include <cmath>

namespace kilter::tensorflow {
namespace {

Tensor transposed(const Tensor& matrix) {
    const int64_t rows = matrix.dim(0);
    const int64_t columns = matrix.dim(1);
    Tensor result(DType::f32, {columns, rows});
    const auto from = matrix.as<float>();
    const auto to = result.as_mutable<float>();
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
            to[static_cast<size_t>(c * rows + r)] = from[static_cast<size_t>(r * columns + c)];
    return result;
}

}  // namespace

QuantizedWeights quantize_weights(const TfGraph& graph, const TfNode& product, bool per_channel, int bits,
                                  const std::vector<float>& least) {
    Tensor weights = *constant_of(graph, product.inputs[1]);
    if (product.op == "MatMul" && product.attributes.get_bool("transpose_b")) weights = transposed(weights);
    const bool depthwise = product.op == "DepthwiseConv2dNative";
    // Output channels are the innermost elements of all three layouts.
    const auto channels = static_cast<size_t>(depthwise ? weights.dim(2) * weights.dim(3) : weights.dim(-1));
    const auto values = weights.as<float>();
    std::vector<float> limits(channels, 0.0F);
    for (size_t i = 0; i < values.size(); ++i)
        limits[i % channels] = std::max(limits[i % channels], std::fabs(values[i]));
    const auto most = static_cast<float>((1 << (bits - 1)) - 1);
    for (size_t c = 0; c < channels; ++c) {
        limits[c] = limits[c] > 0 || !per_channel ? limits[c] * (127.0F / most)
                                                  : 1.0F;  // zeros are zero at any scale
        if (c < least.size()) limits[c] = std::max(limits[c], least[c]);
    }
    if (!per_channel) {
        const float widest = *std::ranges::max_element(limits);
        limits.assign(channels, widest > 0 ? widest : 1.0F);
    }
    QuantizedWeights result{Tensor(DType::i8, weights.shape()), {}, std::vector<double>(channels, 0.0)};
    const auto bytes = result.bytes.as_mutable<int8_t>();
    for (size_t i = 0; i < values.size(); ++i) {
        const size_t channel = i % channels;
        const float scaled = std::nearbyint(values[i] * (127.0F / limits[channel]));  // half to even
        bytes[i] = static_cast<int8_t>(std::clamp(scaled, -most, most));
        result.channel_sum[channel] += bytes[i] * (static_cast<double>(limits[channel]) / 127);
    }
    result.limits = per_channel ? std::move(limits) : std::vector<float>{limits[0]};
    return result;
}

}  // namespace kilter::tensorflow
