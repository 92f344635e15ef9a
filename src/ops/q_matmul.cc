// kilter.QMatMul: a product of 8-bit matrices in exact integers, then bias, post-ops and rounding in float32.
// Inputs: a (u8 or i8), b (i8), bias (f32, optional), operands of binary post-ops. b_scale: one number, or one per column.
#include "base/fail.h"
#include "ops/integer_result.h"
#include "ops/numeric.h"
#include "ops/product.h"

namespace kilter::q_matmul_op {

void infer(InferContext& context) {
    float_tail(context.node());
    const DType dtype = result_type(context.attributes()).dtype;
    if (!context.shape(0) || !context.shape(1)) return context.set_output(0, dtype);
    const Dims a = transposed_dims(*context.shape(0), "the first operand");
    const Dims b = transposed_dims(*context.shape(1), "the second operand");
    const bool trans_a = context.attributes().get_int("trans_a") != 0;
    const bool trans_b = context.attributes().get_int("trans_b") != 0;
    context.set_output(0, dtype,
                       product_dims(trans_a ? a : *context.shape(0), trans_b ? b : *context.shape(1)));
}

void kernel(KernelContext& context) {
    const Attributes& attributes = context.attributes();
    Tensor a = centered_reals(needed(context, 0, "the first operand"), attributes.get_int("a_zero_point"),
                              "the first operand");
    Tensor b = centered_reals(needed(context, 1, "the second operand"), attributes.get_int("b_zero_point"),
                              "the second operand");
    require(a.rank() >= 2 && b.rank() >= 2, "operands must have rank 2 or more, found {} and {}",
            to_string(a.shape()), to_string(b.shape()));
    if (attributes.get_int("trans_a") != 0) a = transposed(a, "the first operand");
    if (attributes.get_int("trans_b") != 0) b = transposed(b, "the second operand");
    FloatTail tail = float_tail(context.node());
    tail.scales =
        scale_products(attributes.get_float("a_scale", 1.0F), attributes.get_floats("b_scale", {1.0F}));
    if (context.has_input(2)) tail.bias = context.input(2);
    const Tensor sums = product(a, b);
    store_result(context, sums, sums.shape().size() - 1, tail);
}

KILTER_OP({.name = "QMatMul",
           .domain = kKilterDomain,
           .min_inputs = 2,
           .max_inputs = kVariadic,
           .attributes = with_result_attributes({{"trans_a", AttributeKind::integer},
                                                 {"trans_b", AttributeKind::integer},
                                                 {"a_scale", AttributeKind::real},
                                                 {"a_zero_point", AttributeKind::integer},
                                                 {"b_scale", AttributeKind::reals},
                                                 {"b_zero_point", AttributeKind::integer}}),
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::q_matmul_op
