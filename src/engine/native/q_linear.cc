// QuantizeLinear and DequantizeLinear. Quantizing for a convolution turns the array channels-last on the way.
#include <algorithm>
#include <cstring>

#include "engine/builder.h"
#include "engine/native/bytes.h"
#include "engine/native/loop.h"
#include "engine/native/simd.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

struct Parameters {
    std::vector<float> scales;
    std::vector<int64_t> zero_points;
    int64_t inner = 1;  // elements that share an entry, one after the other in row-major order
};

// Constant parameters, one for all or one per index of an axis.
std::optional<Parameters> parameters(const Builder& builder, const Node& node) {
    const Tensor* scales = builder.constant(node.input(1));
    const Tensor* zero_points = builder.constant(node.input(2));
    if (scales == nullptr || scales->dtype() != DType::f32 ||
        (node.input(2) != nullptr && zero_points == nullptr) || node.attributes.get_int("block_size", 0) != 0)
        return std::nullopt;
    const Shape& shape = builder.shape(node.input(0));
    Parameters found{{scales->as<float>().begin(), scales->as<float>().end()},
                     zero_points == nullptr ? std::vector<int64_t>(static_cast<size_t>(scales->size()), 0)
                                            : zero_points->to_ints(),
                     element_count(shape)};
    if (found.scales.size() != found.zero_points.size()) return std::nullopt;
    if (found.scales.size() == 1) return found;
    const auto axis = static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis", 1), static_cast<int64_t>(shape.size())));
    if (static_cast<int64_t>(found.scales.size()) != shape[axis]) return std::nullopt;
    found.inner = element_count(std::span(shape).subspan(axis + 1));
    return found;
}

// Calls body(start, count, entry) for pieces of an array that share a scale.
template <class Body>
void for_entries(const Parameters& parameters, int64_t size, const Body& body) {
    const auto entries = static_cast<int64_t>(parameters.scales.size());
    if (entries == 1)
        return for_pieces(size, [&](int64_t start, int64_t count) { body(start, count, size_t{0}); });
    const int threads = threads_for(size);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t line = 0; line < size / parameters.inner; ++line)
        body(line * parameters.inner, parameters.inner, static_cast<size_t>(line % entries));
}

// Do the readers of a quantized image want its channels innermost?
bool wants_channels_last(const Value* y) {
    return std::ranges::any_of(y->users(), [](const Node* user) {
        return user->is_kilter("QConv") || user->is_kilter("QConvTranspose") ||
               user->is_kilter("QAveragePool") || user->is_kilter("QGlobalAveragePool") ||
               user->is("MaxPool");
    });
}

// Pixels that are quantized channel by channel before they are interleaved: all of it stays in the first-level cache.
constexpr int64_t kPixels = 512;

KILTER_INLINE void interleave_three_body(const char* line, int64_t count, char* y) {
    for (int64_t i = 0; i < count; ++i) {
        y[3 * i] = line[i];
        y[3 * i + 1] = line[kPixels + i];
        y[3 * i + 2] = line[2 * kPixels + i];
    }
}
KILTER_SIMD(interleave_three, (const char* line, int64_t count, char* y), line, count, y)

void interleave(const float* x, int64_t channels, int64_t plane, int64_t first, int64_t count, float scale,
                int64_t zero_point, DType dtype, char* y) {
    char line[3 * kPixels];  // NOLINT: scratch lines
    // Images have three channels; a loop with a fixed number of them becomes vector code.
    if (channels == 3) {
        for (int64_t channel = 0; channel < 3; ++channel)
            quantize(x + channel * plane + first, count, scale, zero_point, dtype, line + channel * kPixels);
        interleave_three(line, count, y + first * 3);
        return;
    }
    for (int64_t channel = 0; channel < channels; ++channel) {
        quantize(x + channel * plane + first, count, scale, zero_point, dtype, line);
        char* to = y + first * channels + channel;
        for (int64_t i = 0; i < count; ++i) to[i * channels] = line[i];
    }
}

bool build_channels_last(Builder& builder, const Node& node, const Parameters& known) {
    const Value* y = node.output(0);
    const Shape& shape = builder.shape(y);
    if (shape.size() < 3 || shape.size() > 5 || known.scales.size() != 1 || !wants_channels_last(y))
        return false;
    if (!builder.any(node.input(0)).dense) return false;
    const Array x = builder.dense(node.input(0));
    const Array result = builder.result(y, channels_last_desc(builder.dtype(y), shape));
    const int64_t channels = shape[1];
    const int64_t plane = element_count(std::span(shape).subspan(2));
    const int64_t pieces = (plane + kPixels - 1) / kPixels;
    builder.add_native("native:nhwc", {x}, {result}, [=, images = shape[0]](Execution& execution) {
        const auto* from = reinterpret_cast<const float*>(execution.address(x));
        char* to = execution.address(result);
        const int threads = threads_for(images * channels * plane);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int64_t job = 0; job < images * pieces; ++job) {
            const int64_t image = job / pieces;
            const int64_t first = job % pieces * kPixels;
            interleave(from + image * channels * plane, channels, plane, first,
                       std::min(kPixels, plane - first), known.scales[0], known.zero_points[0], result.dtype,
                       to + image * channels * plane);
        }
    });
    return true;
}

// The array in a layout without gaps; row-major when the scales follow an axis.
Array packed_form(Builder& builder, const Value* value, const Parameters& known) {
    const Array array = builder.any(value);
    if (array.dense || known.scales.size() != 1 || !is_packed(array.desc)) return builder.dense(value);
    return array;
}

dnnl::memory::desc like(const dnnl::memory::desc& desc, DType dtype, const Shape& shape, bool dense) {
    if (dense || !desc.get_inner_blks().empty()) return dense_desc(dtype, shape);
    return {desc.get_dims(), dnnl_type(dtype), desc.get_strides()};
}

bool build_quantize(Builder& builder, const Node& node) {
    const Value* y = node.output(0);
    if (builder.dtype(node.input(0)) != DType::f32 || !is_byte(builder.dtype(y))) return false;
    const auto known = parameters(builder, node);
    if (!known) return false;
    if (build_channels_last(builder, node, *known)) return true;
    Array x = packed_form(builder, node.input(0), *known);
    if (!x.dense && !x.desc.get_inner_blks().empty()) x = builder.dense(node.input(0));
    const Array result = builder.result(y, like(x.desc, builder.dtype(y), x.shape, x.dense));
    const int64_t size = element_count(x.shape);
    builder.add_native("native", {x}, {result}, [=, known = *known](Execution& execution) {
        const auto* from = reinterpret_cast<const float*>(execution.address(x));
        char* to = execution.address(result);
        for_entries(known, size, [&](int64_t start, int64_t count, size_t entry) {
            quantize(from + start, count, known.scales[entry], known.zero_points[entry], result.dtype,
                     to + start);
        });
    });
    return true;
}

// Parameters that follow the last axis: a row at a time, so that the loop over columns becomes vector code.
void add_dequantize_columns(Builder& builder, const Array& x, const Array& result, const Parameters& known) {
    const auto columns = static_cast<int64_t>(known.scales.size());
    const int64_t size = element_count(x.shape);
    std::vector<float> zero_points(known.zero_points.begin(), known.zero_points.end());
    builder.add_native(
        "native:columns", {x}, {result},
        [=, scales = known.scales, zero_points = std::move(zero_points)](Execution& execution) {
            const char* from = execution.address(x);
            auto* to = reinterpret_cast<float*>(execution.address(result));
            const int threads = threads_for(size);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
            for (int64_t row = 0; row < size / columns; ++row)
                dequantize_columns(from + row * columns, x.dtype, columns, scales.data(), zero_points.data(),
                                   to + row * columns);
        });
}

bool build_dequantize(Builder& builder, const Node& node) {
    const Value* y = node.output(0);
    if (!is_byte(builder.dtype(node.input(0))) || builder.dtype(y) != DType::f32) return false;
    const auto known = parameters(builder, node);
    if (!known) return false;
    const Array x = packed_form(builder, node.input(0), *known);
    const Array result = builder.result(y, like(x.desc, DType::f32, x.shape, x.dense));
    const int64_t size = element_count(x.shape);
    if (known->inner == 1 && known->scales.size() > 1) {
        add_dequantize_columns(builder, x, result, *known);
        return true;
    }
    builder.add_native("native", {x}, {result}, [=, known = *known](Execution& execution) {
        const char* from = execution.address(x);
        auto* to = reinterpret_cast<float*>(execution.address(result));
        for_entries(known, size, [&](int64_t start, int64_t count, size_t entry) {
            dequantize(from + start, x.dtype, count, known.scales[entry], known.zero_points[entry],
                       to + start);
        });
    });
    return true;
}

bool build_lookup(Builder& builder, const Node& node) {
    if (builder.constant(node.input(1)) == nullptr) return false;
    const Value* y = node.output(0);
    const Array x = packed_form(builder, node.input(0), {{1.0F}, {0}});
    const Array table = builder.dense(node.input(1));
    const Array result = builder.result(y, like(x.desc, builder.dtype(y), x.shape, x.dense));
    const int64_t size = element_count(x.shape);
    builder.add_native("native", {x, table}, {result}, [=](Execution& execution) {
        const char* from = execution.address(x);
        char* to = execution.address(result);
        for_pieces(size, [&](int64_t start, int64_t count) {
            look_up(from + start, count, execution.address(table), to + start);
        });
    });
    return true;
}

KILTER_KERNEL("QuantizeLinear", build_quantize);
KILTER_KERNEL("DequantizeLinear", build_dequantize);
KILTER_KERNEL("QLookup", build_lookup, kKilterDomain);

}  // namespace
}  // namespace kilter::engine
