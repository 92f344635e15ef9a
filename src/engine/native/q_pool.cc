// QAveragePool and QGlobalAveragePool, channels-last: integer sums of windows, scaled and rounded once.
#include <algorithm>
#include <array>

#include "engine/builder.h"
#include "engine/geometry.h"
#include "engine/native/bytes.h"
#include "engine/native/loop.h"
#include "engine/native/simd.h"

namespace kilter::engine {
namespace {

// Channels that are summed at a time, in registers or at least in the first-level cache.
constexpr int64_t kChannels = 256;

KILTER_INLINE void add_bytes_body(const char* x, bool is_signed, int64_t count, int32_t* sums) {
    if (is_signed)
        for (int64_t i = 0; i < count; ++i) sums[i] += reinterpret_cast<const int8_t*>(x)[i];
    else
        for (int64_t i = 0; i < count; ++i) sums[i] += reinterpret_cast<const uint8_t*>(x)[i];
}
KILTER_SIMD(add_bytes, (const char* x, bool is_signed, int64_t count, int32_t* sums), x, is_signed, count,
            sums)

KILTER_INLINE void scale_sums_body(const int32_t* sums, int64_t count, int32_t offset, float factor,
                                   float* t) {
    for (int64_t i = 0; i < count; ++i) t[i] = static_cast<float>(sums[i] - offset) * factor;
}
KILTER_SIMD(scale_sums, (const int32_t* sums, int64_t count, int32_t offset, float factor, float* t), sums,
            count, offset, factor, t)

using Triple = std::array<int64_t, 3>;

struct Windows {
    Triple input{1, 1, 1}, output{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
    int64_t images = 1, channels = 1;
    bool include_pad = false;
    float x_scale = 1.0F;
    int32_t x_zero_point = 0;
    bool is_signed = false;
    ResultType type;
};

// One output pixel.
void average(const Windows& w, const char* image, const Triple& at, char* y) {
    Triple first{};
    Triple last{};
    int64_t count = 1;
    for (size_t axis = 0; axis < 3; ++axis) {
        const int64_t start = at[axis] * w.stride[axis] - w.pad[axis];
        const int64_t step = w.dilation[axis];
        const int64_t begin = start < 0 ? (-start + step - 1) / step : 0;
        const int64_t end = std::min(w.kernel[axis], (w.input[axis] - start + step - 1) / step);
        first[axis] = start + begin * step;
        last[axis] = start + std::max(end, begin) * step;
        count *= std::max<int64_t>(end - begin, 0);
    }
    const int64_t divisor =
        w.include_pad ? w.kernel[0] * w.kernel[1] * w.kernel[2] : std::max<int64_t>(count, 1);
    const float factor = w.x_scale / static_cast<float>(divisor);
    const auto offset = static_cast<int32_t>(count * w.x_zero_point);
    int32_t sums[kChannels];  // NOLINT: scratch
    float floats[kChannels];  // NOLINT
    for (int64_t c = 0; c < w.channels; c += kChannels) {
        const int64_t width = std::min(kChannels, w.channels - c);
        std::fill_n(sums, width, 0);
        for (int64_t z = first[0]; z < last[0]; z += w.dilation[0])
            for (int64_t row = first[1]; row < last[1]; row += w.dilation[1])
                for (int64_t x = first[2]; x < last[2]; x += w.dilation[2])
                    add_bytes(image + ((z * w.input[1] + row) * w.input[2] + x) * w.channels + c, w.is_signed,
                              width, sums);
        if (w.type.dtype == DType::f32) {
            scale_sums(sums, width, offset, factor, reinterpret_cast<float*>(y) + c);
        } else {
            scale_sums(sums, width, offset, factor, floats);
            requantize(floats, width, w.type, y + c);
        }
    }
}

bool add_pool(Builder& builder, const Node& node, Windows w) {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    const Shape& shape = builder.shape(x);
    const Shape& y_shape = builder.shape(y);
    w.images = shape[0];
    w.channels = shape[1];
    const size_t lead = 5 - shape.size();
    for (size_t i = 2; i < shape.size(); ++i) {
        w.input[lead + i - 2] = shape[i];
        w.output[lead + i - 2] = y_shape[i];
    }
    w.x_scale = node.attributes.get_float("x_scale", 1.0F);
    w.x_zero_point = static_cast<int32_t>(node.attributes.get_int("x_zero_point"));
    w.is_signed = builder.dtype(x) == DType::i8;
    w.type = result_type(node.attributes);
    const Array source = builder.as(x, channels_last_desc(builder.dtype(x), shape));
    const Array result = builder.result(y, channels_last_desc(w.type.dtype, y_shape));
    const auto width = static_cast<int64_t>(byte_count(w.type.dtype, 1));
    const int64_t pixels = w.output[0] * w.output[1] * w.output[2];
    const int64_t area = w.input[0] * w.input[1] * w.input[2];
    builder.add_native("native", {source}, {result}, [=](Execution& execution) {
        const char* from = execution.address(source);
        char* to = execution.address(result);
        const int threads =
            threads_for(w.images * pixels * w.channels * w.kernel[0] * w.kernel[1] * w.kernel[2] / 4);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int64_t job = 0; job < w.images * pixels; ++job) {
            const int64_t pixel = job % pixels;
            average(
                w, from + job / pixels * area * w.channels,
                {pixel / (w.output[1] * w.output[2]), pixel / w.output[2] % w.output[1], pixel % w.output[2]},
                to + job * w.channels * width);
        }
    });
    return true;
}

bool build_average(Builder& builder, const Node& node) {
    const Shape& shape = builder.shape(node.input(0));
    const auto geometry = pool_geometry(node, shape, builder.shape(node.output(0)));
    if (!geometry || shape.size() > 5) return false;
    Windows w;
    const size_t lead = 5 - shape.size();
    for (size_t i = 0; i + 2 < shape.size(); ++i) {
        w.kernel[lead + i] = geometry->kernel[i];
        w.stride[lead + i] = geometry->strides[i];
        w.dilation[lead + i] = geometry->dilations[i] + 1;
        w.pad[lead + i] = geometry->pads_begin[i];
    }
    w.include_pad = node.attributes.get_int("count_include_pad") != 0;
    return add_pool(builder, node, w);
}

bool build_global(Builder& builder, const Node& node) {
    const Shape& shape = builder.shape(node.input(0));
    if (shape.size() < 3 || shape.size() > 5) return false;
    Windows w;
    for (size_t i = 2; i < shape.size(); ++i) w.kernel[5 - shape.size() + i - 2] = shape[i];
    return add_pool(builder, node, w);
}

KILTER_KERNEL("QAveragePool", build_average, kKilterDomain);
KILTER_KERNEL("QGlobalAveragePool", build_global, kKilterDomain);

}  // namespace
}  // namespace kilter::engine
