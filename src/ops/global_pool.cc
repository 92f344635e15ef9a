// GlobalAveragePool, GlobalMaxPool and GlobalLpPool: one number per channel.
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::global_pool_op {

Dims global_dims(const Dims& x) {
    require(x.size() >= 2, "the input must have shape [N, C, …], found {}", to_string(x));
    Dims result = x;
    for (size_t axis = 2; axis < x.size(); ++axis) {
        require(!x[axis].known() || x[axis].value > 0, "the input {} has no elements to pool", to_string(x));
        result[axis] = 1;
    }
    return result;
}

void infer(InferContext& context) {
    if (!context.shape(0)) return context.set_output(0, context.dtype(0));
    context.set_output(0, context.dtype(0), global_dims(*context.shape(0)));
}

template <class Reduce>
void run(KernelContext& context, Reduce reduce) {
    const Tensor& x = needed(context, 0, "the input");
    require_real(x.dtype(), "the input");
    Tensor y(DType::f64, ValueType(DType::f64, global_dims(to_dims(x.shape()))).static_shape());
    const Tensor values = to_reals(x);
    const std::span<const double> elements = values.as<double>();
    const std::span<double> results = y.as_mutable<double>();
    const size_t plane = results.empty() ? 0 : elements.size() / results.size();
    for (size_t i = 0; i < results.size(); ++i) results[i] = reduce(elements.subspan(i * plane, plane));
    store_reals(context, 0, x.dtype(), y);
}

void average(KernelContext& context) {
    run(context, [](std::span<const double> plane) {
        double sum = 0;
        for (const double element : plane) sum += element;
        return sum / static_cast<double>(plane.size());
    });
}

void maximum(KernelContext& context) {
    run(context, [](std::span<const double> plane) { return *std::ranges::max_element(plane); });
}

void norm(KernelContext& context) {
    const auto p = static_cast<double>(context.attributes().get_int("p", 2));
    require(p >= 1, "attribute 'p' must be 1 or more, found {}", p);
    run(context, [p](std::span<const double> plane) {
        double sum = 0;
        for (const double element : plane) sum += std::pow(std::fabs(element), p);
        return std::pow(sum, 1.0 / p);
    });
}

KILTER_OP({.name = "GlobalAveragePool", .infer = infer, .kernel = average});
KILTER_OP({.name = "GlobalMaxPool", .infer = infer, .kernel = maximum});
KILTER_OP(
    {.name = "GlobalLpPool", .attributes = {{"p", AttributeKind::integer}}, .infer = infer, .kernel = norm});

}  // namespace kilter::global_pool_op
