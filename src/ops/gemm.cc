// Gemm: alpha * A'·B' + beta * C on matrices, C broadcast to the result.
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/numeric.h"
#include "ops/product.h"

namespace kilter::gemm_op {

Dims gemm_dims(const Attributes& attributes, Dims a, Dims b, const std::optional<Dims>& c) {
    require(a.size() == 2 && b.size() == 2, "A and B must be matrices, found {} and {}", to_string(a),
            to_string(b));
    if (attributes.get_int("transA") != 0) std::swap(a[0], a[1]);
    if (attributes.get_int("transB") != 0) std::swap(b[0], b[1]);
    Dims result = product_dims(a, b);
    if (c) {
        require(c->size() <= 2, "C must have rank 2 or less, found {}", to_string(*c));
        for (size_t i = 0; i < c->size(); ++i) {
            const Dim& mine = (*c)[c->size() - 1 - i];
            require(agree(mine, result[1 - i]) || agree(mine, 1), "C {} does not broadcast to the result {}",
                    to_string(*c), to_string(result));
        }
    }
    return result;
}

void infer(InferContext& context) {
    require_same_dtype(context.dtype(0), context.dtype(1), "B");
    if (!context.shape(0) || !context.shape(1)) return context.set_output(0, context.dtype(0));
    context.set_output(
        0, context.dtype(0),
        gemm_dims(context.attributes(), *context.shape(0), *context.shape(1), context.shape(2)));
}

void kernel(KernelContext& context) {
    const Tensor& a = needed(context, 0, "A");
    const Tensor& b = needed(context, 1, "B");
    require_same_dtype(a.dtype(), b.dtype(), "B");
    const Attributes& attributes = context.attributes();
    const Dims dims =
        gemm_dims(attributes, to_dims(a.shape()), to_dims(b.shape()), optional_dims(context, 2));
    const Tensor left = attributes.get_int("transA") != 0 ? transposed(to_reals(a), "A") : to_reals(a);
    const Tensor right = attributes.get_int("transB") != 0 ? transposed(to_reals(b), "B") : to_reals(b);
    Tensor y = product(left, right);
    const double alpha = attributes.get_float("alpha", 1.0F);
    const double beta = attributes.get_float("beta", 1.0F);
    const std::span<double> values = y.as_mutable<double>();
    for (double& value : values) value *= alpha;
    if (context.has_input(2)) {
        const Tensor c = to_reals(context.input(2));
        BroadcastIndex index(c.shape(), y.shape());
        for (size_t i = 0; i < values.size(); ++i, index.next())
            values[i] += beta * c.as<double>()[static_cast<size_t>(index.offset())];
    }
    store_reals(context, 0, a.dtype(), y);
}

KILTER_OP({.name = "Gemm",
           .min_inputs = 2,
           .max_inputs = 3,
           .attributes = {{"alpha", AttributeKind::real},
                          {"beta", AttributeKind::real},
                          {"transA", AttributeKind::integer},
                          {"transB", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::gemm_op
