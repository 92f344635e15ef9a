// MeanVarianceNormalization: (x - mean) / (deviation + 1e-9) over the given axes.
#include <cmath>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/numeric.h"

namespace kilter::mean_variance_normalization_op {

std::vector<bool> reduced_axes(const Attributes& attributes, int64_t rank) {
    std::vector<bool> reduced(static_cast<size_t>(rank), false);
    require(rank > 0, "the input must have rank 1 or more");
    for (const int64_t axis : attributes.get_ints("axes", {0, 2, 3}))
        reduced[static_cast<size_t>(normalize_axis(axis, rank))] = true;
    return reduced;
}

void infer(InferContext& context) {
    if (context.rank(0) >= 0) reduced_axes(context.attributes(), context.rank(0));
    context.same_as_input();
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    require_real(x.dtype(), "the input");
    const std::vector<bool> reduced = reduced_axes(context.attributes(), x.rank());
    Shape kept = x.shape();
    for (size_t axis = 0; axis < kept.size(); ++axis)
        if (reduced[axis]) kept[axis] = 1;
    Tensor y = to_reals(x).clone();
    const std::span<double> values = y.as_mutable<double>();
    Tensor means = real_zeros(kept);
    Tensor deviations = real_zeros(kept);
    const std::span<double> mean = means.as_mutable<double>();
    const std::span<double> deviation = deviations.as_mutable<double>();
    const double count = values.empty() ? 1.0 : static_cast<double>(values.size() / mean.size());
    const auto for_each = [&](auto visit) {
        BroadcastIndex index(kept, x.shape());
        for (double& value : values) {
            visit(value, static_cast<size_t>(index.offset()));
            index.next();
        }
    };
    for_each([&](double& value, size_t group) { mean[group] += value / count; });
    for_each([&](double& value, size_t group) {
        value -= mean[group];
        deviation[group] += value * value / count;
    });
    for_each([&](double& value, size_t group) { value /= std::sqrt(deviation[group]) + 1e-9; });
    store_reals(context, 0, x.dtype(), y);
}

KILTER_OP({.name = "MeanVarianceNormalization",
           .attributes = {{"axes", AttributeKind::integers}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::mean_variance_normalization_op
