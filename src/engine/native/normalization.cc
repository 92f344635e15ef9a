// Normalizations that oneDNN 3.2 lacks: over instances, groups, root mean squares, norms, and any axes.
#include <algorithm>
#include <cmath>

#include "engine/native/elementwise.h"
#include "engine/native/loop.h"
#include "engine/native/reduce.h"
#include "engine/native/simd.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

// Partial sums in float over this many elements, then in double.
constexpr int64_t kBlock = 256;

KILTER_INLINE double sum(const float* x, int64_t n) {
    double total = 0.0;
    for (int64_t start = 0; start < n; start += kBlock) {
        const int64_t end = start + kBlock < n ? start + kBlock : n;
        float part = 0.0F;
#pragma omp simd reduction(+ : part)
        for (int64_t i = start; i < end; ++i) part += x[i];
        total += part;
    }
    return total;
}

KILTER_INLINE double sum_of_squares(const float* x, int64_t n, float mean) {
    double total = 0.0;
    for (int64_t start = 0; start < n; start += kBlock) {
        const int64_t end = start + kBlock < n ? start + kBlock : n;
        float part = 0.0F;
#pragma omp simd reduction(+ : part)
        for (int64_t i = start; i < end; ++i) part += (x[i] - mean) * (x[i] - mean);
        total += part;
    }
    return total;
}

struct Statistics {
    float mean, inverse_deviation;
};

// In two passes: squares of differences do not cancel.
KILTER_INLINE void measure_body(const float* x, int64_t n, bool centered, float epsilon, Statistics& found) {
    const auto count = static_cast<double>(n);
    found.mean = centered ? static_cast<float>(sum(x, n) / count) : 0.0F;
    const double variance = sum_of_squares(x, n, found.mean) / count;
    found.inverse_deviation = static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(epsilon)));
}
KILTER_SIMD(measure, (const float* x, int64_t n, bool centered, float epsilon, Statistics& found), x, n,
            centered, epsilon, found)

KILTER_INLINE void shift_body(const float* x, float* y, int64_t n, float mean, float factor, float bias) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor + bias;
}
KILTER_SIMD(shift, (const float* x, float* y, int64_t n, float mean, float factor, float bias), x, y, n, mean,
            factor, bias)

KILTER_INLINE void scale_body(const float* x, float* y, int64_t n, float factor, const float* scales) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor * scales[i];
}
KILTER_SIMD(scale, (const float* x, float* y, int64_t n, float factor, const float* scales), x, y, n, factor,
            scales)

bool all_floats(const Builder& builder, const Node& node) {
    return std::ranges::all_of(node.inputs(), [&](const Value* value) {
        return value == nullptr || builder.dtype(value) == DType::f32;
    });
}

// Instances are groups of one channel.
bool build_groups(Builder& builder, const Node& node) {
    const Shape& shape = builder.shape(node.input(0));
    if (!all_floats(builder, node) || shape.size() < 2) return false;
    const int64_t channels = shape[1];
    if (element_count(builder.shape(node.input(1))) != channels ||
        element_count(builder.shape(node.input(2))) != channels)
        return false;
    const int64_t groups =
        node.op() == "GroupNormalization" ? node.attributes.get_int("num_groups", 1) : channels;
    if (groups < 1 || channels % groups != 0) return false;
    const int64_t plane = element_count(std::span(shape).subspan(2));
    const int64_t together = channels / groups;
    const int64_t lines = shape[0] * groups;
    const float epsilon = node.attributes.get_float("epsilon", 1e-5F);
    const Array x = builder.dense(node.input(0));
    const Array factors = builder.dense(node.input(1));
    const Array biases = builder.dense(node.input(2));
    const Array y = elementwise_result(builder, node.output(0), {x});
    builder.add_native("native", {x, factors, biases}, {y}, [=](Execution& execution) {
        const auto* from = reinterpret_cast<const float*>(execution.address(x));
        const auto* factor = reinterpret_cast<const float*>(execution.address(factors));
        const auto* bias = reinterpret_cast<const float*>(execution.address(biases));
        auto* to = reinterpret_cast<float*>(execution.address(y));
        const int threads = threads_for(lines * together * plane);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int64_t line = 0; line < lines; ++line) {
            Statistics found{};
            measure(from + line * together * plane, together * plane, true, epsilon, found);
            for (int64_t i = line * together; i < (line + 1) * together; ++i)
                shift(from + i * plane, to + i * plane, plane, found.mean,
                      found.inverse_deviation * factor[i % channels], bias[i % channels]);
        }
    });
    return true;
}

bool build_rms(Builder& builder, const Node& node) {
    const Shape& shape = builder.shape(node.input(0));
    if (!all_floats(builder, node) || shape.empty()) return false;
    const auto axis = static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis", -1), static_cast<int64_t>(shape.size())));
    const int64_t rows = element_count(std::span(shape).first(axis));
    const int64_t width = element_count(std::span(shape).subspan(axis));
    // One factor per element of a row, not one per row.
    Shape wanted(axis, 1);
    wanted.insert(wanted.end(), shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end());
    Shape given = builder.shape(node.input(1));
    given.insert(given.begin(), shape.size() - given.size(), 1);
    if (given != wanted) return false;
    const float epsilon = node.attributes.get_float("epsilon", 1e-5F);
    const Array x = builder.dense(node.input(0));
    const Array scales = builder.dense(node.input(1));
    const Array y = elementwise_result(builder, node.output(0), {x});
    builder.add_native("native", {x, scales}, {y}, [=](Execution& execution) {
        const auto* from = reinterpret_cast<const float*>(execution.address(x));
        const auto* factors = reinterpret_cast<const float*>(execution.address(scales));
        auto* to = reinterpret_cast<float*>(execution.address(y));
        const int threads = threads_for(rows * width);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int64_t row = 0; row < rows; ++row) {
            Statistics found{};
            measure(from + row * width, width, false, epsilon, found);
            scale(from + row * width, to + row * width, width, found.inverse_deviation, factors);
        }
    });
    return true;
}

// A small array in place: v = function(v).
template <class Function>
void add_map(Builder& builder, const Array& array, const Function& function) {
    const int64_t size = element_count(array.shape);
    builder.add_native("native", {array}, {array}, [=](Execution& execution) {
        auto* values = reinterpret_cast<float*>(execution.address(array));
        for (int64_t i = 0; i < size; ++i) values[i] = function(values[i]);
    });
}

Array reduced_array(Builder& builder, Shape shape, const std::vector<bool>& reduced) {
    for (size_t i = 0; i < shape.size(); ++i)
        if (reduced[i]) shape[i] = 1;
    return builder.temporary(DType::f32, shape, dense_desc(DType::f32, shape));
}

bool build_norm(Builder& builder, const Node& node) {
    const Shape& shape = builder.shape(node.input(0));
    if (!all_floats(builder, node) || shape.empty()) return false;
    std::vector<bool> reduced(shape.size(), false);
    reduced[static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis", -1), static_cast<int64_t>(shape.size())))] = true;
    const Array x = builder.dense(node.input(0));
    const Array norms = reduced_array(builder, shape, reduced);
    add_reduction(builder, node.attributes.get_int("p", 2) == 1 ? Reduction::l1 : Reduction::l2, x, reduced,
                  norms);
    add_map(builder, norms, [](float norm) { return norm == 0.0F ? 1.0F : norm; });  // zero vectors stay zero
    add_native_binary(builder, "div", x, norms, elementwise_result(builder, node.output(0), {x}));
    return true;
}

bool build_mean_variance(Builder& builder, const Node& node) {
    const Shape& shape = builder.shape(node.input(0));
    if (!all_floats(builder, node) || shape.empty()) return false;
    std::vector<bool> reduced(shape.size(), false);
    float count = 1.0F;
    for (const int64_t axis : node.attributes.get_ints("axes", {0, 2, 3}))
        reduced[static_cast<size_t>(normalize_axis(axis, static_cast<int64_t>(shape.size())))] = true;
    for (size_t i = 0; i < shape.size(); ++i)
        if (reduced[i]) count *= static_cast<float>(shape[i]);
    const Array x = builder.dense(node.input(0));
    const Array statistics = reduced_array(builder, shape, reduced);
    add_reduction(builder, Reduction::mean, x, reduced, statistics);
    const Array y = elementwise_result(builder, node.output(0), {x});
    add_native_binary(builder, "sub", x, statistics, y);
    add_reduction(builder, Reduction::sum_square, y, reduced, statistics);
    add_map(builder, statistics, [count](float squares) { return std::sqrt(squares / count) + 1e-9F; });
    add_native_binary(builder, "div", y, statistics, y);
    return true;
}

KILTER_KERNEL("InstanceNormalization", build_groups);
KILTER_KERNEL("GroupNormalization", build_groups);
KILTER_KERNEL("RMSNormalization", build_rms);
KILTER_KERNEL("LpNormalization", build_norm);
KILTER_KERNEL("MeanVarianceNormalization", build_mean_variance);

}  // namespace
}  // namespace kilter::engine
