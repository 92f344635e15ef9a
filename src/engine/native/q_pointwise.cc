#include "engine/native/q_pointwise.h"

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/native/q_tile.h"
#include "engine/native/vnni.h"
#include "ops/integer_result.h"

// _mm512_max_ps and others draw false warnings from GCC 12 (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace kilter::engine {
namespace {

// With more channels the sums take most of the time, and oneDNN's tiles of many pixels are as good; so they are with few results.
constexpr int64_t kMostDepth = 64;
// Source and result of so many pixels stay in the second cache until the last panel has seen them.
constexpr int64_t kChunkBytes = 96 << 10;
constexpr int64_t kParallelWork = 1 << 18;  // multiplications that are worth waking other threads

struct Pointwise {
    int64_t pixels, depth, columns;
    std::vector<int64_t> panels;  // their vectors
    int32_t zero_point;
    ResultType type;
    float low, high;  // of the result, scaled
    bool clamp_low;   // packing does what the type demands, not more
};

// One panel, and the pixels it is multiplied with.
struct Job {
    const uint8_t* x;
    int64_t pixels;
    const char* panel;
    const float *scales, *bias;
    uint8_t* y;
    int64_t columns;  // of this panel
};

#define KILTER_ROW _Pragma("GCC unroll 3") for (int v = 0; v < kVectors; ++v)

// What all pixels of a job share. It is copied from memory once: a store of bytes may change any that the compiler knows of.
template <int kVectors>
struct Numbers {
    __m512i start[kVectors];  // NOLINT: registers
    __m512 scale[kVectors];   // NOLINT
    __m512 bias[kVectors];    // NOLINT
    __m512 inverse_scale, zero_point, low, high;
    __mmask64 there;
    bool to_i8, whole, clamp_low;
    int64_t depth, stride;
    const char* panel;
};

// Packing works within 128 bits: there four columns of each vector come to lie side by side.
template <int kVectors>
KILTER_VNNI_INLINE __m512i packed_bytes(const __m512i (&integers)[kVectors], bool to_i8) {
    const __m512i first = _mm512_packs_epi32(integers[0], integers[kVectors > 1 ? 1 : 0]);
    const __m512i second =
        kVectors > 2 ? _mm512_packs_epi32(integers[kVectors - 1], integers[kVectors - 1]) : first;
    const __m512i mixed = to_i8 ? _mm512_packs_epi16(first, second) : _mm512_packus_epi16(first, second);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 0, 0, 0, 0);
    return _mm512_permutexvar_epi32(order, mixed);
}

template <int kVectors>
KILTER_VNNI_INLINE void store(const Numbers<kVectors>& numbers, __m512i bytes, uint8_t* to) {
    if (!numbers.whole) return _mm512_mask_storeu_epi8(to, numbers.there, bytes);
    if (kVectors == 1)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_castsi512_si128(bytes));
    else
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(bytes));
    if (kVectors == 3)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 32), _mm512_extracti32x4_epi32(bytes, 2));
}

template <int kPixels, int kVectors>
KILTER_VNNI_INLINE void multiply_pixels(const Numbers<kVectors>& numbers, const uint8_t* x, uint8_t* y) {
    __m512i sum[kPixels][kVectors];  // NOLINT: registers
#pragma GCC unroll 2
    for (int p = 0; p < kPixels; ++p) KILTER_ROW sum[p][v] = numbers.start[v];
    const char* panel = numbers.panel;
    const int64_t depth = numbers.depth;
    const char* const end = panel + depth * (kVectors * 16);
#pragma GCC unroll 1
    for (const uint8_t* at = x; panel != end; at += 4, panel += kVectors * 64) {
#pragma GCC unroll 2
        for (int p = 0; p < kPixels; ++p) {
            int32_t word = 0;
            std::memcpy(&word, at + p * depth, 4);
            const __m512i pixel = _mm512_set1_epi32(word);
            KILTER_ROW sum[p][v] = _mm512_dpbusd_epi32(sum[p][v], pixel, _mm512_load_si512(panel + v * 64));
        }
    }
#pragma GCC unroll 2
    for (int p = 0; p < kPixels; ++p) {
        __m512i integers[kVectors];  // NOLINT: registers
        KILTER_ROW {
            __m512 t = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[p][v]), numbers.scale[v]);
            t = _mm512_mul_ps(_mm512_add_ps(t, numbers.bias[v]), numbers.inverse_scale);
            t = _mm512_add_ps(t, numbers.zero_point);
            if (numbers.clamp_low) t = _mm512_max_ps(t, numbers.low);
            integers[v] = _mm512_cvtps_epi32(_mm512_min_ps(numbers.high, t));
        }
        store(numbers, packed_bytes<kVectors>(integers, numbers.to_i8), y + p * numbers.stride);
    }
}

template <int kVectors>
KILTER_VNNI void multiply_panel(const Pointwise& product, const Job& job) {
    Numbers<kVectors> numbers;
    KILTER_ROW {
        numbers.start[v] =
            _mm512_mullo_epi32(_mm512_load_si512(job.panel + v * 64), _mm512_set1_epi32(-product.zero_point));
        numbers.scale[v] = _mm512_loadu_ps(job.scales + v * kLanes);
        numbers.bias[v] = _mm512_loadu_ps(job.bias + v * kLanes);
    }
    numbers.inverse_scale = _mm512_set1_ps(product.type.inverse_scale);
    numbers.zero_point = _mm512_set1_ps(product.type.zero_point);
    numbers.low = _mm512_set1_ps(product.low);
    numbers.high = _mm512_set1_ps(product.high);
    numbers.there = (uint64_t{1} << job.columns) - 1;
    numbers.to_i8 = product.type.dtype == DType::i8;
    numbers.whole = job.columns == kVectors * kLanes;
    numbers.clamp_low = product.clamp_low;
    numbers.depth = product.depth;
    numbers.stride = product.columns;
    numbers.panel = job.panel + kVectors * 64;
    const uint8_t* x = job.x;
    uint8_t* y = job.y;
    for (int64_t pairs = job.pixels / 2; pairs > 0; --pairs, x += 2 * numbers.depth, y += 2 * numbers.stride)
        multiply_pixels<2>(numbers, x, y);
    if (job.pixels % 2 != 0) multiply_pixels<1>(numbers, x, y);
}

struct Addresses {
    const uint8_t* x;
    const char* packed;
    const float *scales, *bias;
    uint8_t* y;
};

void multiply(const Pointwise& product, const Addresses& at) {
    const int64_t chunk = std::max<int64_t>(2, kChunkBytes / (product.depth + product.columns));
    const bool large = product.pixels * product.depth * product.columns >= kParallelWork;
    const int threads = large ? omp_get_max_threads() : 1;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const int64_t last = product.pixels * (omp_get_thread_num() + 1) / omp_get_num_threads();
        int64_t first = product.pixels * omp_get_thread_num() / omp_get_num_threads();
        for (; first < last; first += chunk) {
            const char* panel = at.packed;
            int64_t column = 0;
            for (const int64_t vectors : product.panels) {
                const Job job{at.x + first * product.depth,
                              std::min(chunk, last - first),
                              panel,
                              at.scales + column,
                              at.bias + column,
                              at.y + first * product.columns + column,
                              std::min(vectors * kLanes, product.columns - column)};
                if (vectors == 1)
                    multiply_panel<1>(product, job);
                else if (vectors == 2)
                    multiply_panel<2>(product, job);
                else
                    multiply_panel<3>(product, job);
                column += vectors * kLanes;
                panel += panel_bytes(product.depth, vectors);
            }
        }
    }
}

}  // namespace

bool build_q_pointwise(Builder& builder, const Node& node, const ConvGeometry& geometry) {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    const Tensor* weights = builder.constant(node.input(1));
    const Tensor* bias = builder.constant(node.input(2));
    const FloatTail tail = float_tail(node);
    const ResultType type = result_type(node.attributes);
    const int64_t depth = builder.shape(x)[1];
    const int64_t columns = builder.shape(y)[1];
    const auto all = [](const Shape& numbers, int64_t value) {
        return std::ranges::all_of(numbers, [=](int64_t number) { return number == value; });
    };
    if (!has_vnni() || has_amx() || builder.dtype(x) != DType::u8 || type.dtype == DType::f32 ||
        tail.ops.size() > 1 || geometry.groups != 1 || !all(geometry.kernel, 1) ||
        !all(geometry.strides, 1) || !all(geometry.pads_begin, 0) || !all(geometry.pads_end, 0) ||
        depth % 4 != 0 || depth > kMostDepth || columns < kTileColumns ||
        (node.input(2) != nullptr && bias == nullptr))
        return false;
    float low = -std::numeric_limits<float>::infinity();
    float high = std::numeric_limits<float>::infinity();
    for (const PostOp& op : tail.ops) {
        if (op.name != "relu" && op.name != "clip") return false;
        low = op.name == "relu" ? 0.0F : op.alpha;
        if (op.name == "clip") high = op.beta;
    }
    const float lowest = type.dtype == DType::u8 ? 0.0F : -128.0F;
    const Pointwise product{element_count(builder.shape(y)) / columns, depth, columns, panel_widths(columns),
                            static_cast<int32_t>(node.attributes.get_int("x_zero_point")), type,
                            // Scaling keeps the order of numbers, so the clamp can wait until after it.
                            std::max(low * type.inverse_scale + type.zero_point, lowest),
                            std::min(high * type.inverse_scale + type.zero_point, lowest + 255.0F),
                            low * type.inverse_scale + type.zero_point > lowest};
    const int64_t vectors = (columns + kLanes - 1) / kLanes;
    const Array packed = builder.derived(
        *weights, "panels:pointwise", DType::u8, {panel_bytes(depth, vectors)}, [&](void* to) {
            auto* panel = static_cast<char*>(to);
            int64_t column = 0;
            for (const int64_t width : product.panels) {
                pack_panel(weights->as<int8_t>().data(), 1, depth, depth, column, columns, width, panel);
                column += width * kLanes;
                panel += panel_bytes(depth, width);
            }
        });
    const auto padded = [&](std::span<const float> numbers) {
        Tensor result = Tensor::filled(DType::f32, {vectors * kLanes}, 0.0);
        for (size_t i = 0; i < static_cast<size_t>(columns); ++i)
            result.as_mutable<float>()[i] = numbers[numbers.size() == 1 ? 0 : i];
        return builder.constant_array(result);
    };
    const Array scales = padded(scale_products(node.attributes.get_float("x_scale", 1.0F),
                                               node.attributes.get_floats("w_scale", {1.0F})));
    const std::vector<float> none{0.0F};
    const Array biases = padded(bias == nullptr ? std::span<const float>(none) : bias->as<float>());
    const Array source = builder.as(x, channels_last_desc(DType::u8, builder.shape(x)));
    const Array result = builder.result(y, channels_last_desc(type.dtype, builder.shape(y)));
    builder.add_native(
        "pointwise:avx512_vnni", {source, packed, scales, biases}, {result}, [=](Execution& execution) {
            multiply(product,
                     {reinterpret_cast<const uint8_t*>(execution.address(source)), execution.address(packed),
                      reinterpret_cast<const float*>(execution.address(scales)),
                      reinterpret_cast<const float*>(execution.address(biases)),
                      reinterpret_cast<uint8_t*>(execution.address(result))});
        });
    return true;
}

}  // namespace kilter::engine
