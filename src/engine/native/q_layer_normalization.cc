// QLayerNormalization: one pass over each row writes the f32 result, the 8-bit one, or both.
#include <algorithm>
#include <cmath>

#include "engine/builder.h"
#include "engine/native/bytes_inline.h"
#include "engine/native/loop.h"
#include "ops/integer_result.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

struct Rounding {
    float inverse, zero_point, low, high;
};

KILTER_INLINE void row_body(const float* x, int64_t n, float epsilon, const float* factors,
                            const float* biases, const Rounding& rounding, float* y, uint8_t* bytes) {
    float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    const float mean = sum / static_cast<float>(n);
    float squares = 0.0F;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const float inverse = 1.0F / std::sqrt(squares / static_cast<float>(n) + epsilon);
    const Rounding by = rounding;
    if (y != nullptr) {
        for (int64_t i = 0; i < n; ++i) {
            const float t = (x[i] - mean) * inverse * factors[i] + biases[i];
            y[i] = t;
            const float scaled = t * by.inverse;
            bytes[i] = rounded_byte(scaled + by.zero_point, by.low, by.high);
        }
    } else {
        for (int64_t i = 0; i < n; ++i) {
            const float t = (x[i] - mean) * inverse * factors[i] + biases[i];
            const float scaled = t * by.inverse;
            bytes[i] = rounded_byte(scaled + by.zero_point, by.low, by.high);
        }
    }
}
KILTER_SIMD(row,
            (const float* x, int64_t n, float epsilon, const float* factors, const float* biases,
             const Rounding& rounding, float* y, uint8_t* bytes),
            x, n, epsilon, factors, biases, rounding, y, bytes)

bool build(Builder& builder, const Node& node) {
    const Shape& shape = builder.shape(node.input(0));
    if (builder.dtype(node.input(0)) != DType::f32 || shape.empty()) return false;
    const auto axis = static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis", -1), static_cast<int64_t>(shape.size())));
    const int64_t rows = element_count(std::span(shape).first(axis));
    const int64_t width = element_count(std::span(shape).subspan(axis));
    // One factor and bias per element of a row, not one per row.
    for (const size_t index : {size_t{1}, size_t{2}}) {
        if (node.input(index) == nullptr) continue;
        Shape given = builder.shape(node.input(index));
        given.insert(given.begin(), shape.size() - given.size(), 1);
        if (element_count(given) != width || element_count(std::span(given).first(axis)) != 1) return false;
    }
    const ResultType type = result_type(node.attributes);
    const float low = type.dtype == DType::u8 ? 0.0F : -128.0F;
    const Rounding rounding{type.inverse_scale, type.zero_point, low, low + 255.0F};
    const float epsilon = node.attributes.get_float("epsilon", 1e-5F);
    const Array x = builder.dense(node.input(0));
    const Array factors = builder.dense(node.input(1));
    const Array biases = node.input(2) != nullptr
                             ? builder.dense(node.input(2))
                             : builder.constant_array(Tensor::filled(DType::f32, {width}, 0.0));
    std::vector<Array> writes;
    Array y;
    if (node.output(0) != nullptr) {
        if (builder.dies_here(x)) {
            y = x;
            builder.alias(node.output(0), y);
        } else {
            y = builder.dense_result(node.output(0));
        }
        writes.push_back(y);
    }
    const Array bytes = builder.dense_result(node.output(1));
    writes.push_back(bytes);
    builder.add_native("native", {x, factors, biases}, writes, [=](Execution& execution) {
        const auto* from = reinterpret_cast<const float*>(execution.address(x));
        const auto* factor = reinterpret_cast<const float*>(execution.address(factors));
        const auto* bias = reinterpret_cast<const float*>(execution.address(biases));
        auto* floats = y.valid() ? reinterpret_cast<float*>(execution.address(y)) : nullptr;
        auto* to = reinterpret_cast<uint8_t*>(execution.address(bytes));
        const int threads = threads_for(rows * width);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int64_t i = 0; i < rows; ++i)
            row(from + i * width, width, epsilon, factor, bias, rounding,
                floats == nullptr ? nullptr : floats + i * width, to + i * width);
    });
    return true;
}

KILTER_KERNEL("QLayerNormalization", build, kKilterDomain);

}  // namespace
}  // namespace kilter::engine
