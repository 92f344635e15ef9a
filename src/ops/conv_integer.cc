// ConvInteger and QLinearConv: convolutions of quantized values.
#include "base/fail.h"
#include "ops/convolution.h"
#include "ops/numeric.h"
#include "ops/quantized.h"

namespace kilter::conv_integer_op {

void infer(InferContext& context, size_t weights, size_t bias, DType dtype) {
    if (!context.shape(0) || !context.shape(weights)) return context.set_output(0, dtype);
    context.set_output(
        0, dtype,
        conv_dims(context.attributes(), *context.shape(0), *context.shape(weights), context.shape(bias)));
}

void integer_infer(InferContext& context) { infer(context, 1, context.input_count(), DType::i32); }
void linear_infer(InferContext& context) { infer(context, 3, 8, context.dtype(7)); }

Tensor optional_parameter(const KernelContext& context, size_t index, int axis, int rank,
                          std::string_view what) {
    return context.has_input(index) ? per_slice(context.input(index), axis, rank, what) : Tensor();
}

void integer_kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const Tensor& weights = needed(context, 1, "the weights");
    const Tensor x_zero = optional_parameter(context, 2, -1, x.rank(), "the zero point of the input");
    const Tensor w_zero = optional_parameter(context, 3, 0, weights.rank(), "the zero point of the weights");
    store_reals(context, 0, DType::i32,
                conv(context.attributes(), centered(x, x_zero), centered(weights, w_zero), Tensor()));
}

void linear_kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const Tensor& weights = needed(context, 3, "the weights");
    const Tensor x_scale = per_slice(needed(context, 1, "the input scale"), -1, x.rank(), "the input scale");
    const Tensor x_zero =
        per_slice(needed(context, 2, "the input zero point"), -1, x.rank(), "the input zero point");
    const Tensor w_zero =
        per_slice(needed(context, 5, "the weight zero point"), 0, weights.rank(), "the weight zero point");
    const Tensor bias = context.has_input(8) ? to_reals(context.input(8)) : Tensor();
    Tensor y = conv(context.attributes(), centered(x, x_zero), centered(weights, w_zero), bias);
    scale_by(y, x_scale);
    scale_by(y, per_slice(needed(context, 4, "the weight scale"), 1, y.rank(), "the weight scale"));
    store_quantized(context, 0, y, needed(context, 6, "the output scale"),
                    needed(context, 7, "the output zero point"));
}

KILTER_OP({.name = "ConvInteger",
           .min_inputs = 2,
           .max_inputs = 4,
           .attributes = {{"auto_pad", AttributeKind::text},
                          {"dilations", AttributeKind::integers},
                          {"group", AttributeKind::integer},
                          {"kernel_shape", AttributeKind::integers},
                          {"pads", AttributeKind::integers},
                          {"strides", AttributeKind::integers}},
           .infer = integer_infer,
           .kernel = integer_kernel});

KILTER_OP({.name = "QLinearConv",
           .min_inputs = 8,
           .max_inputs = 9,
           .attributes = {{"auto_pad", AttributeKind::text},
                          {"dilations", AttributeKind::integers},
                          {"group", AttributeKind::integer},
                          {"kernel_shape", AttributeKind::integers},
                          {"pads", AttributeKind::integers},
                          {"strides", AttributeKind::integers}},
           .infer = linear_infer,
           .kernel = linear_kernel});

}  // namespace kilter::conv_integer_op
