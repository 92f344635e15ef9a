// Convolutions: TensorFlow's channels-last data and HWIO weights become ONNX's channels-first forms.
#include <array>

#include "formats/tensorflow/lower/lowering.h"
#include "formats/tensorflow/lower/window.h"

namespace kilter::tensorflow {
namespace {

// The weights (spatial axes, in, out) as (out, in, spatial axes).
Value* output_first(Lowering& l, Value* weights, int rank) {
    Ints perm{rank - 1, rank - 2};
    for (int axis = 0; axis < rank - 2; ++axis) perm.push_back(axis);
    return l.transpose(weights, perm);
}

Ints kernel_of(const Lowering& l, const Value* weights, int spatial) {
    Ints kernel;
    const Dims& dims = l.dims(weights);
    if (static_cast<int>(dims.size()) != spatial + 2) not_lowered("the weights have {} axes", dims.size());
    for (int axis = 0; axis < spatial; ++axis) {
        if (!dims[static_cast<size_t>(axis)].known()) not_lowered("the size of the kernel is not known");
        kernel.push_back(dims[static_cast<size_t>(axis)].value);
    }
    return kernel;
}

void finish(Lowering& l, Value* y, bool last, int rank) {
    l.name_main(y);
    l.result(last ? l.channels_last(y, rank) : y);
}

template <int kRank>
void lower_conv(Lowering& l) {
    const bool last = is_channels_last(l);
    Value* x = last ? l.channels_first(l.input(0), kRank) : l.input(0);
    const WindowAttributes window = read_window(l, kernel_of(l, l.input(1), kRank - 2), x);
    finish(l, emit_conv(l, x, l.input(1), window), last, kRank);
}

void lower_depthwise(Lowering& l) {
    const bool last = is_channels_last(l);
    Value* x = last ? l.channels_first(l.input(0)) : l.input(0);
    const WindowAttributes window = read_window(l, kernel_of(l, l.input(1), 2), x);
    finish(l, emit_depthwise(l, x, l.input(1), window), last, 4);
}

// The gradient of a convolution: inputs are the shape of the result, the weights and x.
void lower_transposed(Lowering& l) {
    const bool last = is_channels_last(l);
    Value* x = last ? l.channels_first(l.input(2)) : l.input(2);
    Value* weights = output_first(l, l.input(1), 4);
    const Ints kernel = kernel_of(l, l.input(1), 2);
    WindowSpec window = read_window_spec(l, kernel);
    const auto wanted = l.shape_data(l.input(0));
    const Dims& in = l.dims(x);
    Ints pads{0, 0, 0, 0};
    Ints extra{0, 0};
    Attributes attributes = attributes_of({{"strides", window.strides}, {"dilations", window.dilations}});
    for (size_t axis = 0; axis < 2; ++axis) {
        const int64_t stride = window.strides[axis];
        const int64_t reach = (kernel[axis] - 1) * window.dilations[axis] + 1;
        // Without a known size the result is what Keras asks for: the input times the stride, and without padding what the kernel reaches
        // beyond.
        const size_t place = last ? axis + 1 : axis + 2;
        const bool known = wanted && wanted->size() == 4 && (*wanted)[place].known() && in[axis + 2].known();
        const int64_t steps = known ? in[axis + 2].value : 2;
        int64_t size = steps * stride + std::max<int64_t>(reach - stride, 0);
        if (known)
            size = (*wanted)[place].value;
        else if (window.padding == "SAME")
            size = steps * stride;
        int64_t before = 0;
        int64_t after = 0;
        if (window.padding == "SAME") {
            const int64_t total = std::max<int64_t>((steps - 1) * stride + reach - size, 0);
            before = total / 2;
            after = total - before;
        } else if (window.padding == "EXPLICIT") {
            before = window.explicit_pads[axis];
            after = window.explicit_pads[axis + 2];
            if (!known) size = (steps - 1) * stride + reach - before - after;
        }
        extra[axis] = size - ((steps - 1) * stride + reach - before - after);
        require(extra[axis] >= 0 && extra[axis] < std::max(stride, window.dilations[axis]),
                "a result of size {} does not fit an input of size {}", size, steps);
        pads[axis] = before;
        pads[axis + 2] = after;
    }
    attributes.set("pads", pads);
    attributes.set("output_padding", extra);
    finish(l, l.emit("ConvTranspose", {x, weights}, std::move(attributes)), last, 4);
}

void lower_bias_add(Lowering& l) {
    Value* x = l.input(0);
    if (is_channels_last(l)) return l.result(l.emit("Add", {x, l.input(1)}));
    Ints shape{1, -1};
    shape.resize(static_cast<size_t>(l.rank(x)), 1);
    l.result(l.emit("Add", {x, l.reshape(l.input(1), shape)}));
}

constexpr std::array kConvolutionRules{
    LowerRule{"Conv2D", lower_conv<4>},
    LowerRule{"Conv3D", lower_conv<5>},
    LowerRule{"DepthwiseConv2dNative", lower_depthwise},
    LowerRule{"Conv2DBackpropInput", lower_transposed},
    LowerRule{"BiasAdd", lower_bias_add},
    LowerRule{"BiasAddV1",
              [](Lowering& l) {
                  l.result(l.emit("Add", {l.input(0), l.input(1)}));
              }},
};

}  // namespace

Value* emit_conv(Lowering& l, Value* x, Value* weights, const WindowAttributes& window) {
    const int rank = l.rank(weights);
    Value* turned = output_first(l, weights, rank);
    Attributes attributes = window.to_onnx();
    const Dims& in = l.dims(x);
    const Dims& w = l.dims(turned);
    if (static_cast<int>(in.size()) == rank && in[1].known() && w[1].known() && w[1].value > 0 &&
        in[1].value != w[1].value) {
        require(in[1].value % w[1].value == 0, "{} input channels do not fit weights for {}", in[1].value,
                w[1].value);
        attributes.set("group", in[1].value / w[1].value);
    }
    return l.emit("Conv", {x, turned}, std::move(attributes));
}

Value* emit_depthwise(Lowering& l, Value* x, Value* weights, const WindowAttributes& window) {
    const Dims w = l.dims(weights);
    if (w.size() != 4 || !w[2].known() || !w[3].known()) not_lowered("the shape of the weights is not known");
    // (h, w, channel, multiplier): output channel = channel · multipliers + multiplier.
    Value* turned = l.transpose(weights, {2, 3, 0, 1});
    const Ints shape{w[2].value * w[3].value, 1, w[0].value, w[1].value};
    if (const Tensor* tensor = l.constant(turned))
        turned = l.add_constant(tensor->reshaped(shape));
    else
        turned = l.reshape(turned, shape);
    Attributes attributes = window.to_onnx();
    attributes.set("group", w[2].value);
    return l.emit("Conv", {x, turned}, std::move(attributes));
}

std::span<const LowerRule> convolution_rules() { return kConvolutionRules; }

}  // namespace kilter::tensorflow
