// LpNormalization: vectors along one axis divided by their 1- or 2-norm; a zero vector stays zero.
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::lp_normalization_op {

void check(const Attributes& attributes, int64_t rank) {
    const int64_t p = attributes.get_int("p", 2);
    require(p == 1 || p == 2, "attribute 'p' must be 1 or 2, found {}", p);
    normalize_axis(attributes.get_int("axis", -1), rank);
}

void infer(InferContext& context) {
    if (context.rank(0) >= 0) check(context.attributes(), context.rank(0));
    context.same_as_input();
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    require_real(x.dtype(), "the input");
    check(context.attributes(), x.rank());
    const bool squares = context.attributes().get_int("p", 2) == 2;
    const auto axis = static_cast<size_t>(normalize_axis(context.attributes().get_int("axis", -1), x.rank()));
    Tensor y = to_reals(x).clone();
    const std::span<double> values = y.as_mutable<double>();
    if (!values.empty()) {
        const auto count = static_cast<size_t>(x.rank() == 0 ? 1 : x.shape()[axis]);
        const auto stride = static_cast<size_t>(extent(x.shape(), axis + 1, x.shape().size()));
        for (size_t line = 0; line < values.size() / count; ++line) {
            const std::span<double> first = values.subspan(line / stride * count * stride + line % stride);
            double sum = 0;
            for (size_t i = 0; i < count; ++i)
                sum += squares ? first[i * stride] * first[i * stride] : std::fabs(first[i * stride]);
            const double norm = squares ? std::sqrt(sum) : sum;
            for (size_t i = 0; i < count; ++i) first[i * stride] = norm == 0 ? 0.0 : first[i * stride] / norm;
        }
    }
    store_reals(context, 0, x.dtype(), y);
}

KILTER_OP({.name = "LpNormalization",
           .attributes = {{"axis", AttributeKind::integer}, {"p", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::lp_normalization_op
