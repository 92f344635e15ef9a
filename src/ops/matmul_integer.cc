// MatMulInteger and QLinearMatMul: products of quantized values. Parameters of a go by row, those of b by column.
#include "base/fail.h"
#include "ops/numeric.h"
#include "ops/product.h"
#include "ops/quantized.h"

namespace kilter::matmul_integer_op {

void infer(InferContext& context, size_t b, DType dtype) {
    if (!context.shape(0) || !context.shape(b)) return context.set_output(0, dtype);
    context.set_output(0, dtype, product_dims(*context.shape(0), *context.shape(b)));
}

void integer_infer(InferContext& context) { infer(context, 1, DType::i32); }
void linear_infer(InferContext& context) { infer(context, 3, context.dtype(7)); }

Tensor by_row(const Tensor& parameter, const Tensor& a) {
    return per_slice(parameter, a.rank() - 2, a.rank(), "a's parameter");
}
Tensor by_column(const Tensor& parameter, const Tensor& b) {
    return per_slice(parameter, b.rank() - 1, b.rank(), "b's parameter");
}

void integer_kernel(KernelContext& context) {
    const Tensor& a = needed(context, 0, "a");
    const Tensor& b = needed(context, 1, "b");
    const Tensor a_zero = context.has_input(2) ? by_row(context.input(2), a) : Tensor();
    const Tensor b_zero = context.has_input(3) ? by_column(context.input(3), b) : Tensor();
    store_reals(context, 0, DType::i32, product(centered(a, a_zero), centered(b, b_zero)));
}

void linear_kernel(KernelContext& context) {
    const Tensor& a = needed(context, 0, "a");
    const Tensor& b = needed(context, 3, "b");
    const Tensor a_zero = by_row(needed(context, 2, "a's zero point"), a);
    const Tensor b_zero = by_column(needed(context, 5, "b's zero point"), b);
    Tensor y = product(centered(a, a_zero), centered(b, b_zero));
    scale_by(y, by_row(needed(context, 1, "a's scale"), a));
    scale_by(y, by_column(needed(context, 4, "b's scale"), b));
    store_quantized(context, 0, y, needed(context, 6, "the output scale"),
                    needed(context, 7, "the output zero point"));
}

KILTER_OP({.name = "MatMulInteger",
           .min_inputs = 2,
           .max_inputs = 4,
           .infer = integer_infer,
           .kernel = integer_kernel});
KILTER_OP({.name = "QLinearMatMul",
           .min_inputs = 8,
           .max_inputs = 8,
           .infer = linear_infer,
           .kernel = linear_kernel});

}  // namespace kilter::matmul_integer_op
