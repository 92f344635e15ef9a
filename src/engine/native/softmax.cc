// Softmax and LogSoftmax along an axis that is not innermost: columns side by side.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/native/loop.h"
#include "engine/native/math.h"
#include "engine/native/order.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

// Columns that are worked on together; their maxima and sums stay in registers and the first cache.
constexpr int64_t kColumns = 64;

KILTER_INLINE void softmax_body(const float* x, float* y, int64_t extent, int64_t stride, int64_t n,
                                bool logarithm) {
    float top[kColumns];    // NOLINT: vector registers
    float total[kColumns];  // NOLINT
    for (int64_t i = 0; i < n; ++i) top[i] = x[i];
    for (int64_t k = 1; k < extent; ++k)
        for (int64_t i = 0; i < n; ++i) top[i] = x[k * stride + i] > top[i] ? x[k * stride + i] : top[i];
    for (int64_t i = 0; i < n; ++i) total[i] = 0.0F;
    for (int64_t k = 0; k < extent; ++k) {
        for (int64_t i = 0; i < n; ++i) {
            const float power = vector_exp(x[k * stride + i] - top[i]);
            total[i] += power;
            y[k * stride + i] = logarithm ? x[k * stride + i] - top[i] : power;
        }
    }
    for (int64_t i = 0; i < n; ++i) total[i] = logarithm ? vector_log(total[i]) : 1.0F / total[i];
    for (int64_t k = 0; k < extent; ++k)
        for (int64_t i = 0; i < n; ++i)
            y[k * stride + i] = logarithm ? y[k * stride + i] - total[i] : y[k * stride + i] * total[i];
}
KILTER_SIMD(softmax, (const float* x, float* y, int64_t extent, int64_t stride, int64_t n, bool logarithm), x,
            y, extent, stride, n, logarithm)

bool build(Builder& builder, const Node& node) {
    const Value* value = node.input(0);
    const Shape& shape = builder.shape(value);
    if (builder.dtype(value) != DType::f32 || shape.empty()) return false;
    const auto axis = static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis", -1), static_cast<int64_t>(shape.size())));
    OrderedArray source = in_memory_order(builder, value);
    if (source.order.block != 0) source = in_natural_order(builder, value);
    const size_t place = source.order.place(axis);
    const std::span<const int64_t> sizes(source.sizes);
    const int64_t outer = element_count(sizes.first(place));
    const int64_t extent = sizes[place];
    const int64_t inner = element_count(sizes.subspan(place + 1));
    const bool logarithm = node.op() == "LogSoftmax";
    const Array x = source.array;
    Array y = x;
    if (builder.dies_here(x))
        builder.alias(node.output(0), y);
    else
        y = builder.result(node.output(0), source.order.desc(DType::f32, shape));
    builder.add_native("native", {x}, {y}, [=](Execution& execution) {
        const auto* from = reinterpret_cast<const float*>(execution.address(x));
        auto* to = reinterpret_cast<float*>(execution.address(y));
        const int64_t pieces = (inner + kColumns - 1) / kColumns;
        const int threads = threads_for(outer * extent * inner * 4);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int64_t job = 0; job < outer * pieces; ++job) {
            const int64_t start = job / pieces * extent * inner + job % pieces * kColumns;
            softmax(from + start, to + start, extent, inner,
                    std::min(kColumns, inner - job % pieces * kColumns), logarithm);
        }
    });
    return true;
}

KILTER_KERNEL("Softmax", build);
KILTER_KERNEL("LogSoftmax", build);

}  // namespace
}  // namespace kilter::engine
