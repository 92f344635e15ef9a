// kilter.QConv and kilter.QConvTranspose: convolutions of 8-bit integers, (x - x_zero_point)·w in exact integers, then bias,
// post-ops and rounding in float32. Inputs: x (u8 or i8), weights (i8), bias (f32, optional), operands of binary post-ops.
#include "base/fail.h"
#include "ops/convolution.h"
#include "ops/integer_result.h"
#include "ops/numeric.h"

namespace kilter::q_conv_op {

template <auto dims>
void infer(InferContext& context) {
    float_tail(context.node());
    const DType dtype = result_type(context.attributes()).dtype;
    if (!context.shape(0) || !context.shape(1)) return context.set_output(0, dtype);
    context.set_output(0, dtype,
                       dims(context.attributes(), *context.shape(0), *context.shape(1), context.shape(2)));
}

template <auto convolve>
void kernel(KernelContext& context) {
    const Attributes& attributes = context.attributes();
    const Tensor x =
        centered_reals(needed(context, 0, "the input"), attributes.get_int("x_zero_point"), "the input");
    const Tensor weights = centered_reals(needed(context, 1, "the weights"), 0, "the weights");
    FloatTail tail = float_tail(context.node());
    tail.scales =
        scale_products(attributes.get_float("x_scale", 1.0F), attributes.get_floats("w_scale", {1.0F}));
    if (context.has_input(2)) tail.bias = context.input(2);
    store_result(context, convolve(attributes, x, weights, {}), 1, tail);
}

std::vector<AttributeSpec> attributes(std::vector<AttributeSpec> more) {
    const std::vector<AttributeSpec> shared{
        {"auto_pad", AttributeKind::text}, {"dilations", AttributeKind::integers},
        {"group", AttributeKind::integer}, {"kernel_shape", AttributeKind::integers},
        {"pads", AttributeKind::integers}, {"strides", AttributeKind::integers},
        {"x_scale", AttributeKind::real},  {"x_zero_point", AttributeKind::integer},
        {"w_scale", AttributeKind::reals}};
    more.insert(more.end(), shared.begin(), shared.end());
    return with_result_attributes(std::move(more));
}

KILTER_OP({.name = "QConv",
           .domain = kKilterDomain,
           .min_inputs = 2,
           .max_inputs = kVariadic,
           .attributes = attributes({}),
           .infer = infer<conv_dims>,
           .kernel = kernel<conv>});

KILTER_OP({.name = "QConvTranspose",
           .domain = kKilterDomain,
           .min_inputs = 2,
           .max_inputs = kVariadic,
           .attributes = attributes({{"output_padding", AttributeKind::integers},
                                     {"output_shape", AttributeKind::integers}}),
           .infer = infer<conv_transpose_dims>,
           .kernel = kernel<conv_transpose>});

}  // namespace kilter::q_conv_op
