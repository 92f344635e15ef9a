// Local response normalization over channels, for the shapes and layouts that oneDNN has no fast kernel for.
#include <algorithm>
#include <vector>

#include "engine/native/loop.h"
#include "engine/native/math.h"
#include "engine/native/order.h"

namespace kilter::engine {
namespace {

struct Response {
    int64_t before, after;  // neighbours that count
    float factor, exponent, bias;
};

constexpr int64_t kColumns = 64;

KILTER_INLINE float response(const Response& lrn, float x, float squares) {
    return x * vector_exp(-lrn.exponent * vector_log(lrn.bias + lrn.factor * squares));
}

// Channels side by side: `squares` has room for the neighbours beyond both ends, which are zero.
KILTER_INLINE void pixel_body(const Response& lrn, const float* x, float* y, int64_t channels,
                              float* squares) {
    float* own = squares + lrn.before;
    for (int64_t c = 0; c < channels; ++c) own[c] = x[c] * x[c];
    for (int64_t c = 0; c < channels; ++c) {
        float sum = 0.0F;
        for (int64_t k = -lrn.before; k <= lrn.after; ++k) sum += own[c + k];
        y[c] = response(lrn, x[c], sum);
    }
}
KILTER_SIMD(pixel, (const Response& lrn, const float* x, float* y, int64_t channels, float* squares), lrn, x,
            y, channels, squares)

// Pixels side by side, one channel after the other.
KILTER_INLINE void columns_body(const Response& lrn, const float* x, float* y, int64_t channels,
                                int64_t plane, int64_t n) {
    float sums[kColumns];  // NOLINT: vector registers
    for (int64_t c = 0; c < channels; ++c) {
        const int64_t first = c - lrn.before > 0 ? c - lrn.before : 0;
        const int64_t last = c + lrn.after < channels ? c + lrn.after : channels - 1;
        for (int64_t i = 0; i < n; ++i) sums[i] = 0.0F;
        for (int64_t k = first; k <= last; ++k)
            for (int64_t i = 0; i < n; ++i) sums[i] += x[k * plane + i] * x[k * plane + i];
        for (int64_t i = 0; i < n; ++i) y[c * plane + i] = response(lrn, x[c * plane + i], sums[i]);
    }
}
KILTER_SIMD(columns,
            (const Response& lrn, const float* x, float* y, int64_t channels, int64_t plane, int64_t n), lrn,
            x, y, channels, plane, n)

bool build(Builder& builder, const Node& node) {
    const Value* value = node.input(0);
    const Shape& shape = builder.shape(value);
    const int64_t size = node.attributes.get_int("size", 1);
    if (builder.dtype(value) != DType::f32 || shape.size() < 2 || size < 1) return false;
    const Response lrn{std::min((size - 1) / 2, shape[1]), std::min(size / 2, shape[1]),
                       node.attributes.get_float("alpha", 1e-4F) / static_cast<float>(size),
                       node.attributes.get_float("beta", 0.75F), node.attributes.get_float("bias", 1.0F)};
    OrderedArray source = in_memory_order(builder, value);
    if (source.order.block != 0) source = in_natural_order(builder, value);
    const size_t place = source.order.place(1);
    const std::span<const int64_t> sizes(source.sizes);
    const int64_t outer = element_count(sizes.first(place));
    const int64_t channels = shape[1];
    const int64_t plane = element_count(sizes.subspan(place + 1));
    const Array x = source.array;
    const Array y = builder.result(node.output(0), source.order.desc(DType::f32, shape));
    builder.add_native("native", {x}, {y}, [=](Execution& execution) {
        const auto* from = reinterpret_cast<const float*>(execution.address(x));
        auto* to = reinterpret_cast<float*>(execution.address(y));
        const int64_t pieces = (plane + kColumns - 1) / kColumns;
        const int threads = threads_for(outer * channels * plane);
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            std::vector<float> squares(
                static_cast<size_t>(plane == 1 ? channels + lrn.before + lrn.after : 0), 0.0F);
#pragma omp for schedule(static)
            for (int64_t job = 0; job < outer * pieces; ++job) {
                const int64_t column = job % pieces * kColumns;
                const int64_t start = job / pieces * channels * plane + column;
                if (plane == 1)
                    pixel(lrn, from + start, to + start, channels, squares.data());
                else
                    columns(lrn, from + start, to + start, channels, plane,
                            std::min(kColumns, plane - column));
            }
        }
    });
    return true;
}

KILTER_KERNEL("LRN", build);

}  // namespace
}  // namespace kilter::engine
