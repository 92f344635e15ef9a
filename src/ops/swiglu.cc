// SwiGLU: swish(a) * b, element by element.
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::swiglu_op {

void check(const std::optional<Dims>& a, const std::optional<Dims>& b) {
    if (!a || !b) return;
    bool same = a->size() == b->size();
    for (size_t i = 0; same && i < a->size(); ++i) same = agree((*a)[i], (*b)[i]);
    require(same, "gate {} and value {} must have the same shape", to_string(*a), to_string(*b));
}

void infer(InferContext& context) {
    require_same_dtype(context.dtype(0), context.dtype(1), "the value");
    check(context.shape(0), context.shape(1));
    context.same_as_input();
}

void kernel(KernelContext& context) {
    const Tensor& a = needed(context, 0, "the gate");
    const Tensor& b = needed(context, 1, "the value");
    require_real(a.dtype(), "the gate");
    require_same_dtype(a.dtype(), b.dtype(), "the value");
    check(to_dims(a.shape()), to_dims(b.shape()));
    const double alpha = context.attributes().get_float("alpha", 1.0F);
    Tensor y = to_reals(a).clone();
    const Tensor factors = to_reals(b);
    const std::span<double> values = y.as_mutable<double>();
    for (size_t i = 0; i < values.size(); ++i)
        values[i] *= factors.as<double>()[i] / (1.0 + std::exp(-alpha * values[i]));
    store_reals(context, 0, a.dtype(), y);
}

KILTER_OP({.name = "SwiGLU",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"alpha", AttributeKind::real}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::swiglu_op
