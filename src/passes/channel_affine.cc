#include "passes/channel_affine.h"

#include <algorithm>

#include "base/convert.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

bool is_transposed_conv(const Node& node) { return node.op() == "ConvTranspose"; }

// Weights seen as outer × channels × inner; with groups, a transposed convolution's channels start anew in
// each group.
struct ChannelView {
    int64_t outer = 1, channels = 1, inner = 1;
    int64_t outer_per_group = 0;  // 0: one group
};

ChannelView view_weights(const Node& node, const Shape& shape) {
    ChannelView view;
    const int64_t count = element_count(shape);
    if (node.is_kilter("MatMul")) {
        const bool transposed = node.attributes.get_int("trans_b") != 0;
        view.channels = shape[shape.size() - (transposed ? 2 : 1)];
        view.inner = transposed ? shape.back() : 1;
    } else if (is_transposed_conv(node)) {
        view.channels = shape[1];
        view.inner = shape[0] * shape[1] == 0 ? 0 : count / (shape[0] * shape[1]);
        view.outer_per_group = shape[0] / std::max<int64_t>(node.attributes.get_int("group", 1), 1);
    } else {
        view.channels = shape[0];
        view.inner = shape[0] == 0 ? 0 : count / shape[0];
    }
    view.outer = count == 0 ? 0 : count / (view.channels * view.inner);
    return view;
}

double entry(const std::vector<double>& numbers, int64_t channel) {
    return numbers[numbers.size() == 1 ? 0 : static_cast<size_t>(channel)];
}

Tensor scale_channels(const Node& node, const Tensor& weights, const std::vector<double>& scale) {
    const ChannelView view = view_weights(node, weights.shape());
    Tensor scaled(weights.dtype(), weights.shape());
    const DType dtype = weights.dtype();
    // Almost all weights are f32, and there are millions of them.
    const float* from = dtype == DType::f32 ? weights.as<float>().data() : nullptr;
    float* to = dtype == DType::f32 ? scaled.as_mutable<float>().data() : nullptr;
    int64_t i = 0;
    for (int64_t outer = 0; outer < view.outer; ++outer) {
        const int64_t first = view.outer_per_group == 0 ? 0 : outer / view.outer_per_group * view.channels;
        for (int64_t channel = 0; channel < view.channels; ++channel) {
            const double factor = entry(scale, first + channel);
            const int64_t end = i + view.inner;
            if (dtype == DType::f32) {
                for (; i < end; ++i) to[i] = static_cast<float>(from[i] * factor);
            } else {
                for (; i < end; ++i)
                    store_double(dtype, scaled.raw_mutable(), i,
                                 load_double(dtype, weights.raw(), i) * factor);
            }
        }
    }
    return scaled;
}

bool all(const std::vector<double>& numbers, double wanted) {
    return std::ranges::all_of(numbers, [&](double number) { return number == wanted; });
}

}  // namespace

bool has_channels(const Node& node) {
    if (!is_any(node, {"Conv", "ConvTranspose", "kilter.Conv", "kilter.ConvTranspose", "kilter.MatMul"}))
        return false;
    return node.attributes.get_strings("post_ops").empty() && is_float(node.output());
}

int64_t channel_count(const Graph& graph, const Node& node) {
    if (const Tensor* weights = constant_of(graph, node.input(1))) {
        if (weights->rank() < 2) return 0;
        const int64_t channels = view_weights(node, weights->shape()).channels;
        if (!is_transposed_conv(node)) return channels;
        const int64_t groups = node.attributes.get_int("group", 1);
        return groups < 1 || weights->dim(0) % groups != 0 ? 0 : channels * groups;
    }
    const int axis = channel_axis(node);
    if (axis < 0) return 0;
    const Dim& dim = (*node.output()->type.shape)[static_cast<size_t>(axis)];
    return dim.known() ? dim.value : 0;
}

int channel_axis(const Node& node) {
    const int rank = rank_of(node.output());
    if (rank < 2) return -1;
    return node.is_kilter("MatMul") ? rank - 1 : 1;
}

std::optional<std::vector<double>> channel_constant(const Graph& graph, const Value* value,
                                                    const Node& node) {
    const Tensor* tensor = constant_of(graph, value);
    if (tensor == nullptr || !kilter::is_float(tensor->dtype())) return std::nullopt;
    const int rank = rank_of(node.output());
    const int shift = rank - tensor->rank();
    if (rank < 0 || shift < 0) return std::nullopt;
    if (tensor->size() == 1) return tensor->to_doubles();
    const int64_t channels = channel_count(graph, node);
    const int axis = channel_axis(node) - shift;
    if (axis < 0 || tensor->size() != channels || tensor->dim(axis) != channels) return std::nullopt;
    return tensor->to_doubles();
}

bool absorb_affine(Graph& graph, Node& node, const ChannelAffine& affine) {
    const Tensor* weights = constant_of(graph, node.input(1));
    const Tensor* bias = constant_of(graph, node.input(2));
    const int64_t channels = channel_count(graph, node);
    const bool scales = !all(affine.scale, 1.0);
    const bool scales_alpha = weights == nullptr && node.is_kilter("MatMul") && affine.scale.size() == 1;
    const bool shifts = bias != nullptr || !all(affine.shift, 0.0);
    if (((shifts || !scales_alpha) && channels == 0) || (node.input(2) != nullptr && bias == nullptr))
        return false;
    if (bias != nullptr && bias->size() != 1 && bias->size() != channels) return false;
    if (scales && weights == nullptr && !scales_alpha) return false;

    if (shifts) {
        const DType dtype = bias != nullptr ? bias->dtype() : node.output()->type.dtype;
        const std::vector<double> old = bias != nullptr ? bias->to_doubles() : std::vector<double>{0.0};
        Tensor shifted(dtype, {channels});
        for (int64_t c = 0; c < channels; ++c)
            store_double(dtype, shifted.raw_mutable(), c,
                         entry(old, c) * entry(affine.scale, c) + entry(affine.shift, c));
        const std::string stem = bias != nullptr ? node.input(2)->name() : node.output()->name() + "_bias";
        graph.set_input(node, 2, graph.add_constant(std::move(shifted), graph.fresh_name(stem)));
    }
    if (scales && scales_alpha) {
        node.attributes.set("alpha",
                            static_cast<float>(node.attributes.get_float("alpha", 1.0F) * affine.scale[0]));
    } else if (scales) {
        Tensor scaled = scale_channels(node, *weights, affine.scale);
        graph.set_input(node, 1,
                        graph.add_constant(std::move(scaled), graph.fresh_name(node.input(1)->name())));
    }
    return true;
}

}  // namespace kilter
