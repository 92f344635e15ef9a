// The windows of convolutions and pools: TensorFlow's strides, dilations and padding as ONNX's attributes.
#pragma once

#include "formats/tensorflow/lower/lowering.h"

namespace kilter::tensorflow {

//! Strides, dilations and pads of the spatial axes.
struct WindowAttributes {
    Ints kernel, strides, dilations;
    Ints pads;             // before all axes, then after them; empty when only a run can tell
    std::string auto_pad;  // then

    //! Without kernel_shape, which convolutions have from their weights.
    Attributes to_onnx() const;
};

struct WindowSpec {
    std::string padding;  // SAME, VALID or EXPLICIT
    Ints strides, dilations;
    Ints explicit_pads;  // before all axes, then after them
};

//! What the attributes say. Gives up on strides or pads of the batch or channel axis.
WindowSpec read_window_spec(const Lowering& lowering, const Ints& kernel);
//! The same, with pads where the channels-first `x` has a known size.
WindowAttributes read_window(const Lowering& lowering, const Ints& kernel, const Value* x);

//! Conv from a channels-first `x` and TensorFlow's weights (spatial axes, in, out), or (h, w, channel, multiplier).
Value* emit_conv(Lowering& lowering, Value* x, Value* weights, const WindowAttributes& window);
Value* emit_depthwise(Lowering& lowering, Value* x, Value* weights, const WindowAttributes& window);

//! The spatial entries of a list with one entry per axis of the data, e.g. ksize.
Ints spatial_entries(const Lowering& lowering, const Ints& list, size_t spatial, std::string_view name);

}  // namespace kilter::tensorflow
