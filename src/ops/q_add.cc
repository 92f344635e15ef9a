// kilter.QAdd and kilter.QMul: two quantized tensors, with NumPy broadcasting and unary post-ops.
// Sum: t = fma(b - zb, sb, (a - za)·sa). Product: t = (a - za)(b - zb)·(sa·sb), the integers exact.
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/integer_result.h"
#include "ops/numeric.h"

namespace kilter::q_add_op {

void infer(InferContext& context) {
    for (const PostOp& op : post_ops(context.node(), 2))
        require(!op.is_binary(), "post-op '{}' has no operand here", op.name);
    const DType dtype = result_type(context.attributes()).dtype;
    if (!context.shape(0) || !context.shape(1)) return context.set_output(0, dtype);
    context.set_output(0, dtype, broadcast(*context.shape(0), *context.shape(1)));
}

template <class Combine>
void run(KernelContext& context, const Combine& combine) {
    const Attributes& attributes = context.attributes();
    const Tensor a =
        centered_reals(needed(context, 0, "the first operand"), attributes.get_int("a_zero_point"), "a");
    const Tensor b =
        centered_reals(needed(context, 1, "the second operand"), attributes.get_int("b_zero_point"), "b");
    const Shape shape = broadcast(a.shape(), b.shape());
    const float a_scale = attributes.get_float("a_scale", 1.0F);
    const float b_scale = attributes.get_float("b_scale", 1.0F);
    const ResultType type = result_type(attributes);
    const std::vector<PostOp> ops = post_ops(context.node(), 2);
    Tensor& y = context.output(0, type.dtype, shape);
    BroadcastIndex a_index(a.shape(), shape);
    BroadcastIndex b_index(b.shape(), shape);
    for (int64_t i = 0; i < y.size(); ++i) {
        float t = combine(static_cast<float>(a.as<double>()[static_cast<size_t>(a_index.offset())]),
                          static_cast<float>(b.as<double>()[static_cast<size_t>(b_index.offset())]), a_scale,
                          b_scale);
        for (const PostOp& op : ops) t = apply_post_op(op, t, 0.0F);
        if (type.dtype == DType::f32)
            store_double(DType::f32, y.raw_mutable(), i, t);
        else
            store_int(type.dtype, y.raw_mutable(), i, requantize(t, type));
        a_index.next();
        b_index.next();
    }
}

void add(KernelContext& context) {
    run(context, [](float a, float b, float a_scale, float b_scale) {
        const float first = a * a_scale;
        return std::fma(b, b_scale, first);
    });
}

void multiply(KernelContext& context) {
    run(context, [](float a, float b, float a_scale, float b_scale) {
        const float scale = a_scale * b_scale;
        return a * b * scale;
    });
}

std::vector<AttributeSpec> attributes() {
    return with_result_attributes({{"a_scale", AttributeKind::real},
                                   {"a_zero_point", AttributeKind::integer},
                                   {"b_scale", AttributeKind::real},
                                   {"b_zero_point", AttributeKind::integer}});
}

KILTER_OP({.name = "QAdd",
           .domain = kKilterDomain,
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = attributes(),
           .infer = infer,
           .kernel = add});

KILTER_OP({.name = "QMul",
           .domain = kKilterDomain,
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = attributes(),
           .infer = infer,
           .kernel = multiply});

}  // namespace kilter::q_add_op
