// MatMul, and kilter.MatMul: optional transposes, a factor and a bias, then post-ops.
#include "base/fail.h"
#include "ops/numeric.h"
#include "ops/post_ops.h"
#include "ops/product.h"

namespace kilter::matmul_op {

void infer(InferContext& context) {
    require_same_dtype(context.dtype(0), context.dtype(1), "the second operand");
    if (!context.shape(0) || !context.shape(1)) return context.set_output(0, context.dtype(0));
    context.set_output(0, context.dtype(0), product_dims(*context.shape(0), *context.shape(1)));
}

void kernel(KernelContext& context) {
    const Tensor& a = needed(context, 0, "the first operand");
    const Tensor& b = needed(context, 1, "the second operand");
    require_same_dtype(a.dtype(), b.dtype(), "the second operand");
    if (is_integer(a.dtype())) return store_words(context, 0, a.dtype(), product(to_words(a), to_words(b)));
    require_real(a.dtype(), "the first operand");
    store_reals(context, 0, a.dtype(), product(to_reals(a), to_reals(b)));
}

// The bias of kilter.MatMul is [N] or [1].
void require_bias(const std::optional<Dims>& bias, const Dims& result) {
    require(!bias || (bias->size() == 1 && (agree((*bias)[0], result.back()) || agree((*bias)[0], 1))),
            "the bias must have shape [{}] or [1], found {}", to_string(result.back()),
            bias ? to_string(*bias) : "");
}

void fused_infer(InferContext& context) {
    post_ops(context.node());
    require_same_dtype(context.dtype(0), context.dtype(1), "the second operand");
    if (!context.shape(0) || !context.shape(1)) return context.set_output(0, context.dtype(0));
    // Validates the ranks as well, which is why it runs without a transpose too.
    const Dims a = transposed_dims(*context.shape(0), "the first operand");
    const Dims b = transposed_dims(*context.shape(1), "the second operand");
    const bool trans_a = context.attributes().get_int("trans_a") != 0;
    const bool trans_b = context.attributes().get_int("trans_b") != 0;
    Dims result = product_dims(trans_a ? a : *context.shape(0), trans_b ? b : *context.shape(1));
    require_bias(context.shape(2), result);
    context.set_output(0, context.dtype(0), std::move(result));
}

void fused_kernel(KernelContext& context) {
    const std::vector<PostOp> ops = post_ops(context.node());
    Tensor a = to_reals(needed(context, 0, "the first operand"));
    Tensor b = to_reals(needed(context, 1, "the second operand"));
    const DType dtype = context.input(0).dtype();
    require_real(dtype, "the first operand");
    require_same_dtype(dtype, context.input(1).dtype(), "the second operand");
    require(a.rank() >= 2 && b.rank() >= 2, "operands must have rank 2 or more, found {} and {}",
            to_string(a.shape()), to_string(b.shape()));
    if (context.attributes().get_int("trans_a") != 0) a = transposed(a, "the first operand");
    if (context.attributes().get_int("trans_b") != 0) b = transposed(b, "the second operand");
    Tensor y = product(a, b);
    require_bias(optional_dims(context, 2), to_dims(y.shape()));
    const double alpha = context.attributes().get_float("alpha", 1.0F);
    const Tensor bias = context.has_input(2) ? to_reals(context.input(2)) : Tensor();
    const std::span<double> values = y.as_mutable<double>();
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] *= alpha;
        if (bias.empty()) continue;
        const size_t column = i % static_cast<size_t>(y.dim(-1));
        values[i] += bias.as<double>()[bias.size() == 1 ? 0 : column];
    }
    apply_post_ops(ops, store_reals(context, 0, dtype, y), all_inputs(context));
}

KILTER_OP({.name = "MatMul", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});

KILTER_OP({.name = "MatMul",
           .domain = kKilterDomain,
           .min_inputs = 2,
           .max_inputs = kVariadic,
           .attributes = {{"trans_a", AttributeKind::integer},
                          {"trans_b", AttributeKind::integer},
                          {"alpha", AttributeKind::real},
                          {"post_ops", AttributeKind::texts},
                          {"post_alphas", AttributeKind::reals},
                          {"post_betas", AttributeKind::reals}},
           .infer = fused_infer,
           .kernel = fused_kernel});

}  // namespace kilter::matmul_op
