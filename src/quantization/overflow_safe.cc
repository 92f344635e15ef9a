#include "quantization/overflow_safe.h"

#include <algorithm>

#include "kilter/quantization/capabilities.h"

namespace kilter {
namespace {

// 255 · 128 = 32640 is the largest multiple of 255 within int16 (docs/arithmetic.md, "Machines without VNNI").
constexpr int kLargestPair = 128;

// Weights seen as [output channel][input channel][position]; kernels pair neighbouring input channels of one position.
struct View {
    int64_t outputs = 1, inputs = 1, positions = 1;
    int64_t output_stride = 1, input_stride = 1, position_stride = 1;
};

View view_of(const Tensor& weights, const Node& node) {
    View view;
    if (public_type(node) == "MatMul") {
        const int64_t rows = weights.dim(-2);
        const int64_t columns = weights.dim(-1);
        const bool transposed = node.attributes.get_int("trans_b") != 0;
        view = {transposed ? rows : columns, transposed ? columns : rows, 1,
                transposed ? columns : 1,    transposed ? 1 : columns,    1};
        return view;
    }
    int64_t positions = 1;
    for (int i = 2; i < weights.rank(); ++i) positions *= weights.dim(i);
    const bool transposed = public_type(node) == "ConvTranspose";
    view.outputs = weights.dim(transposed ? 1 : 0);
    view.inputs = weights.dim(transposed ? 0 : 1);
    view.positions = positions;
    view.output_stride = transposed ? positions : weights.dim(1) * positions;
    view.input_stride = transposed ? weights.dim(1) * positions : positions;
    return view;
}

// The largest sum of two neighbouring weights of one sign, in output channel `channel`.
int largest_pair(std::span<const int8_t> weights, const View& view, int64_t channel) {
    int largest = 0;
    for (int64_t i = 0; i + 1 < view.inputs; i += 2)
        for (int64_t p = 0; p < view.positions; ++p) {
            const int64_t at =
                channel * view.output_stride + i * view.input_stride + p * view.position_stride;
            const int a = weights[static_cast<size_t>(at)];
            const int b = weights[static_cast<size_t>(at + view.input_stride)];
            largest = std::max({largest, std::max(a, 0) + std::max(b, 0), std::max(-a, 0) + std::max(-b, 0)});
        }
    return largest;
}

}  // namespace

int64_t make_overflow_safe(QuantParams& params, const Tensor& weights, const Node& node, int bits) {
    const View view = view_of(weights, node);
    if (view.inputs < 2) return 0;  // depthwise: nothing is paired
    if (public_type(node) == "MatMul" && weights.rank() != 2) return 0;
    std::vector<bool> raised(params.scales.size(), false);
    for (bool again = true; again;) {
        again = false;
        const Tensor integers = quantize_tensor(weights, params, bits);
        std::vector<float> scales = params.scales;
        for (int64_t channel = 0; channel < view.outputs; ++channel) {
            const int pair = largest_pair(integers.as<int8_t>(), view, channel);
            if (pair <= kLargestPair) continue;
            const auto which = params.scales.size() == 1 ? 0 : static_cast<size_t>(channel);
            // A little more than needed, so that rounding does not bring the same pair back.
            const float wanted = params.scales[which] * static_cast<float>(pair) / (kLargestPair - 0.5F);
            scales[which] = std::max(scales[which], wanted);
            raised[which] = true;
            again = true;
        }
        params.scales = std::move(scales);
    }
    return std::ranges::count(raised, true);
}

}  // namespace kilter
