// Softmax, LogSoftmax and Hardmax along one axis.
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::softmax_op {

void infer(InferContext& context) {
    if (context.rank(0) >= 0) normalize_axis(context.attributes().get_int("axis", -1), context.rank(0));
    context.same_as_input();
}

// Calls `apply` on every line along the axis: lines of `count` numbers, `stride` apart.
template <class Apply>
void for_each_line(KernelContext& context, Apply apply) {
    const Tensor& x = needed(context, 0, "the input");
    require_real(x.dtype(), "the input");
    const auto axis = static_cast<size_t>(normalize_axis(context.attributes().get_int("axis", -1), x.rank()));
    Tensor y = to_reals(x).clone();
    const int64_t count = x.rank() == 0 ? 1 : x.shape()[axis];
    if (y.size() > 0) {
        const int64_t stride = extent(x.shape(), axis + 1, x.shape().size());
        const int64_t lines = y.size() / count;
        double* data = y.as_mutable<double>().data();
        for (int64_t line = 0; line < lines; ++line)
            apply(data + line / stride * count * stride + line % stride, count, stride);
    }
    store_reals(context, 0, x.dtype(), y);
}

double maximum(const double* line, int64_t count, int64_t stride) {
    double largest = line[0];
    for (int64_t i = 1; i < count; ++i) largest = std::max(largest, line[i * stride]);
    return largest;
}

double exponential_sum(const double* line, int64_t count, int64_t stride, double shift) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += std::exp(line[i * stride] - shift);
    return sum;
}

void softmax(KernelContext& context) {
    for_each_line(context, [](double* line, int64_t count, int64_t stride) {
        const double shift = maximum(line, count, stride);
        const double sum = exponential_sum(line, count, stride, shift);
        for (int64_t i = 0; i < count; ++i) line[i * stride] = std::exp(line[i * stride] - shift) / sum;
    });
}

void log_softmax(KernelContext& context) {
    for_each_line(context, [](double* line, int64_t count, int64_t stride) {
        const double shift = maximum(line, count, stride);
        const double logarithm = std::log(exponential_sum(line, count, stride, shift));
        for (int64_t i = 0; i < count; ++i) line[i * stride] = line[i * stride] - shift - logarithm;
    });
}

void hardmax(KernelContext& context) {
    for_each_line(context, [](double* line, int64_t count, int64_t stride) {
        int64_t first = 0;
        for (int64_t i = 1; i < count; ++i)
            if (line[i * stride] > line[first * stride]) first = i;
        for (int64_t i = 0; i < count; ++i) line[i * stride] = i == first ? 1.0 : 0.0;
    });
}

KILTER_OP(
    {.name = "Softmax", .attributes = {{"axis", AttributeKind::integer}}, .infer = infer, .kernel = softmax});
KILTER_OP({.name = "LogSoftmax",
           .attributes = {{"axis", AttributeKind::integer}},
           .infer = infer,
           .kernel = log_softmax});
KILTER_OP(
    {.name = "Hardmax", .attributes = {{"axis", AttributeKind::integer}}, .infer = infer, .kernel = hardmax});

}  // namespace kilter::softmax_op
