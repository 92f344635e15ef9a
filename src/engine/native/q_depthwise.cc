#include "engine/native/q_depthwise.h"

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/native/vnni.h"

// _mm512_inserti64x4 and others draw false warnings from GCC 12 (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace kilter::engine {
namespace {

constexpr int64_t kMostRows = 8;      // two groups of four
constexpr int64_t kMostColumns = 48;  // interleaved at a time; they must stay in the first-level cache
constexpr int64_t kMostTaps = 16;     // groups of rows times columns of the kernel
constexpr int64_t kBlock = 32;        // channels are packed in blocks of so many
constexpr int64_t kParallelWork = 1 << 15;

// A block of 32 channels: four registers of eight numbers. Register j holds, from every 16 channels, those at 4j to 4j+3:
// the order in which unpacking bytes leaves them, and which packing them restores.
constexpr int64_t channel_of(int64_t j, int64_t lane) { return lane / 4 * 16 + 4 * j + lane % 4; }

struct Block {  // offsets into the packed bytes of a block
    int64_t start, scale, bias, weights, bytes;
    explicit Block(int64_t columns)
        : start(0),
          scale(4 * kBlock),
          bias(8 * kBlock),
          weights(12 * kBlock),
          bytes(weights + columns * 4 * kBlock) {}
};

// Two neighbouring blocks of 32 channels make a vector of 64: all of the first, then all of the second.
struct Wide {
    using Bytes = __m512i;
    using Floats = __m512;
    static constexpr int64_t kChannels = 64;
    KILTER_VNNI_INLINE Bytes load(const uint8_t* x) { return _mm512_loadu_si512(x); }
    KILTER_VNNI_INLINE Bytes load_aligned(const void* x) { return _mm512_load_si512(x); }
    KILTER_VNNI_INLINE void store_aligned(void* x, Bytes v) { _mm512_store_si512(x, v); }
    KILTER_VNNI_INLINE Bytes spread(uint8_t value) { return _mm512_set1_epi8(static_cast<char>(value)); }
    KILTER_VNNI_INLINE Floats spread(float value) { return _mm512_set1_ps(value); }
    KILTER_VNNI_INLINE Bytes zero() { return _mm512_setzero_si512(); }
    KILTER_VNNI_INLINE Bytes low8(Bytes a, Bytes b) { return _mm512_unpacklo_epi8(a, b); }
    KILTER_VNNI_INLINE Bytes high8(Bytes a, Bytes b) { return _mm512_unpackhi_epi8(a, b); }
    KILTER_VNNI_INLINE Bytes low16(Bytes a, Bytes b) { return _mm512_unpacklo_epi16(a, b); }
    KILTER_VNNI_INLINE Bytes high16(Bytes a, Bytes b) { return _mm512_unpackhi_epi16(a, b); }
    KILTER_VNNI_INLINE Bytes dot(Bytes sum, Bytes x, Bytes w) { return _mm512_dpbusd_epi32(sum, x, w); }
    KILTER_VNNI_INLINE Bytes two(const char* x, int64_t block) {
        return _mm512_inserti64x4(
            _mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i*>(x))),
            _mm256_load_si256(reinterpret_cast<const __m256i*>(x + block)), 1);
    }
    KILTER_VNNI_INLINE Floats floats(const char* x, int64_t block) {
        return _mm512_castsi512_ps(two(x, block));
    }
    KILTER_VNNI_INLINE Floats to_floats(Bytes v) { return _mm512_cvtepi32_ps(v); }
    KILTER_VNNI_INLINE Bytes to_integers(Floats v) { return _mm512_cvtps_epi32(v); }
    KILTER_VNNI_INLINE Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
    KILTER_VNNI_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
    KILTER_VNNI_INLINE Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
    KILTER_VNNI_INLINE Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
    KILTER_VNNI_INLINE Bytes pack32(Bytes a, Bytes b) { return _mm512_packs_epi32(a, b); }
    KILTER_VNNI_INLINE Bytes pack_u8(Bytes a, Bytes b) { return _mm512_packus_epi16(a, b); }
    KILTER_VNNI_INLINE Bytes pack_i8(Bytes a, Bytes b) { return _mm512_packs_epi16(a, b); }
    KILTER_VNNI_INLINE void store(uint8_t* y, Bytes v) { _mm512_storeu_si512(y, v); }
};

struct Narrow {
    using Bytes = __m256i;
    using Floats = __m256;
    static constexpr int64_t kChannels = 32;
    KILTER_VNNI_INLINE Bytes load(const uint8_t* x) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
    }
    KILTER_VNNI_INLINE Bytes load_aligned(const void* x) {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(x));
    }
    KILTER_VNNI_INLINE void store_aligned(void* x, Bytes v) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(x), v);
    }
    KILTER_VNNI_INLINE Bytes spread(uint8_t value) { return _mm256_set1_epi8(static_cast<char>(value)); }
    KILTER_VNNI_INLINE Floats spread(float value) { return _mm256_set1_ps(value); }
    KILTER_VNNI_INLINE Bytes zero() { return _mm256_setzero_si256(); }
    KILTER_VNNI_INLINE Bytes low8(Bytes a, Bytes b) { return _mm256_unpacklo_epi8(a, b); }
    KILTER_VNNI_INLINE Bytes high8(Bytes a, Bytes b) { return _mm256_unpackhi_epi8(a, b); }
    KILTER_VNNI_INLINE Bytes low16(Bytes a, Bytes b) { return _mm256_unpacklo_epi16(a, b); }
    KILTER_VNNI_INLINE Bytes high16(Bytes a, Bytes b) { return _mm256_unpackhi_epi16(a, b); }
    KILTER_VNNI_INLINE Bytes dot(Bytes sum, Bytes x, Bytes w) { return _mm256_dpbusd_epi32(sum, x, w); }
    KILTER_VNNI_INLINE Bytes two(const char* x, int64_t) { return load_aligned(x); }
    KILTER_VNNI_INLINE Floats floats(const char* x, int64_t block) {
        return _mm256_castsi256_ps(two(x, block));
    }
    KILTER_VNNI_INLINE Floats to_floats(Bytes v) { return _mm256_cvtepi32_ps(v); }
    KILTER_VNNI_INLINE Bytes to_integers(Floats v) { return _mm256_cvtps_epi32(v); }
    KILTER_VNNI_INLINE Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
    KILTER_VNNI_INLINE Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
    KILTER_VNNI_INLINE Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
    KILTER_VNNI_INLINE Floats min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
    KILTER_VNNI_INLINE Bytes pack32(Bytes a, Bytes b) { return _mm256_packs_epi32(a, b); }
    KILTER_VNNI_INLINE Bytes pack_u8(Bytes a, Bytes b) { return _mm256_packus_epi16(a, b); }
    KILTER_VNNI_INLINE Bytes pack_i8(Bytes a, Bytes b) { return _mm256_packs_epi16(a, b); }
    KILTER_VNNI_INLINE void store(uint8_t* y, Bytes v) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), v);
    }
};

// The kernel rows over one output row, first channel of the vector. Beyond the image they stand still on a line of zero points.
struct Rows {
    const uint8_t* at[kMostRows];
    int64_t step[kMostRows];  // bytes from one column to the next
};

// What one call computes: `count` output pixels of one row, for the channels of one vector.
struct Line {
    Rows rows;
    int64_t groups, kernel_w, step, dilation;  // step: input columns per output pixel
    int64_t first_column, columns;             // input columns under the line, the first may be negative
    int64_t width, stride;                     // of the image: columns, and bytes from one to the next
    uint8_t zero_point;
    const char* packed;
    int64_t block_bytes;
    int64_t count;
    uint8_t* y;
    float low, high, inverse_scale, y_zero_point;
    bool to_i8;
};

template <class V>
KILTER_VNNI_INLINE void interleave(typename V::Bytes r0, typename V::Bytes r1, typename V::Bytes r2,
                                   typename V::Bytes r3, char* to) {
    const auto a = V::low8(r0, r1);
    const auto b = V::high8(r0, r1);
    const auto c = V::low8(r2, r3);
    const auto d = V::high8(r2, r3);
    V::store_aligned(to, V::low16(a, c));
    V::store_aligned(to + V::kChannels, V::high16(a, c));
    V::store_aligned(to + 2 * V::kChannels, V::low16(b, d));
    V::store_aligned(to + 3 * V::kChannels, V::high16(b, d));
}

template <class V>
KILTER_VNNI_INLINE void interleave_group(const Line& line, int64_t group, char* columns) {
    const int64_t bytes = line.groups * 4 * V::kChannels;
    char* to = columns + group * 4 * V::kChannels;
    const auto outside = V::spread(line.zero_point);
    const int64_t before = std::clamp<int64_t>(-line.first_column, 0, line.columns);
    const int64_t after = std::clamp<int64_t>(line.width - line.first_column, before, line.columns);
    for (int64_t i = 0; i < before; ++i) interleave<V>(outside, outside, outside, outside, to + i * bytes);
    const uint8_t* row[4];
    int64_t step[4];
    for (int64_t k = 0; k < 4; ++k) {
        step[k] = line.rows.step[4 * group + k];
        row[k] = line.rows.at[4 * group + k] + (line.first_column + before) * step[k];
    }
    for (int64_t i = before; i < after; ++i) {
        interleave<V>(V::load(row[0]), V::load(row[1]), V::load(row[2]), V::load(row[3]), to + i * bytes);
        for (int64_t k = 0; k < 4; ++k) row[k] += step[k];
    }
    for (int64_t i = after; i < line.columns; ++i)
        interleave<V>(outside, outside, outside, outside, to + i * bytes);
}

// `kTaps` columns of one group of rows; 0 for any number of both. Everything is copied to local variables first: a store of
// bytes may change any memory the compiler knows of, and it would load the weights again after each.
template <class V, int64_t kTaps>
KILTER_VNNI_INLINE void compute(const Line& line, const char* columns) {
    using Bytes = typename V::Bytes;
    using Floats = typename V::Floats;
    const Block block(line.kernel_w * line.groups);
    const int64_t taps = kTaps > 0 ? kTaps : line.kernel_w * line.groups;
    const int64_t groups = kTaps > 0 ? 1 : line.groups;
    Bytes start[4];
    Bytes weights[4 * (kTaps > 0 ? kTaps : kMostTaps)];
    Floats scale[4];
    Floats bias[4];
    for (int64_t j = 0; j < 4; ++j) {
        const char* numbers = line.packed + j * kBlock;
        start[j] = V::two(numbers, line.block_bytes);
        scale[j] = V::floats(numbers + block.scale, line.block_bytes);
        bias[j] = V::floats(numbers + block.bias, line.block_bytes);
        for (int64_t tap = 0; tap < taps; ++tap)
            weights[4 * tap + j] = V::two(numbers + block.weights + tap * 4 * kBlock, line.block_bytes);
    }
    const Floats low = V::spread(line.low);
    const Floats high = V::spread(line.high);
    const Floats inverse = V::spread(line.inverse_scale);
    const Floats zero_point = V::spread(line.y_zero_point);
    const int64_t step = line.step * groups * 4 * V::kChannels;
    const int64_t dilation = line.dilation * groups * 4 * V::kChannels;
    const int64_t stride = line.stride;
    const int64_t count = line.count;
    const bool to_i8 = line.to_i8;
    uint8_t* y = line.y;
    for (int64_t i = 0; i < count; ++i) {
        Bytes sum[4] = {start[0], start[1], start[2], start[3]};
        for (int64_t tap = 0; tap < taps; ++tap) {
            const char* x = columns + tap / groups * dilation + tap % groups * 4 * V::kChannels;
            for (int64_t j = 0; j < 4; ++j)
                sum[j] = V::dot(sum[j], V::load_aligned(x + j * V::kChannels), weights[4 * tap + j]);
        }
        for (int64_t j = 0; j < 4; ++j) {
            auto t = V::add(V::mul(V::to_floats(sum[j]), scale[j]), bias[j]);
            t = V::add(V::mul(t, inverse), zero_point);
            sum[j] = V::to_integers(V::min(V::max(t, low), high));
        }
        const auto first = V::pack32(sum[0], sum[1]);
        const auto second = V::pack32(sum[2], sum[3]);
        V::store(y, to_i8 ? V::pack_i8(first, second) : V::pack_u8(first, second));
        y += stride;
        columns += step;
    }
}

template <class V>
KILTER_VNNI void run_line(const Line& line) {
    alignas(64) char columns[kMostColumns * (kMostRows / 4) * 4 * V::kChannels];  // NOLINT: scratch
    for (int64_t group = 0; group < line.groups; ++group) interleave_group<V>(line, group, columns);
    if (line.groups == 1 && line.kernel_w == 3) return compute<V, 3>(line, columns);
    compute<V, 0>(line, columns);
}

}  // namespace

bool QDepthwise::supports(const DepthwiseShape& shape) {
    return has_vnni() && shape.kernel_h <= kMostRows && shape.channels >= kBlock &&
           (shape.kernel_h + 3) / 4 * shape.kernel_w <= kMostTaps &&
           (shape.kernel_w - 1) * shape.dilation_w + 1 + shape.stride_w <= kMostColumns;
}

QDepthwise::QDepthwise(const DepthwiseShape& shape, uint8_t zero_point, ResultType type, float low,
                       float high)
    : shape_(shape),
      zero_point_(zero_point),
      type_(type),
      low_(low),
      high_(high),
      groups_((shape.kernel_h + 3) / 4) {}

size_t QDepthwise::packed_bytes() const {
    // One block more than the channels need: a vector of two blocks may end beyond the last.
    const int64_t blocks = (shape_.channels + kBlock - 1) / kBlock + 1;
    return static_cast<size_t>(blocks * Block(shape_.kernel_w * groups_).bytes);
}

void QDepthwise::pack(const int8_t* weights, const std::vector<float>& scales, const float* bias,
                      char* packed) const {
    const Block block(shape_.kernel_w * groups_);
    std::memset(packed, 0, packed_bytes());
    const int64_t taps = shape_.kernel_h * shape_.kernel_w;
    // The last vector is moved back so that it ends with the last channel; its block starts there, too.
    for (int64_t start = 0; start < shape_.channels; start += kBlock) {
        const int64_t first = std::min(start, shape_.channels - kBlock);
        char* to = packed + start / kBlock * block.bytes;
        for (int64_t j = 0; j < 4; ++j) {
            for (int64_t lane = 0; lane < 8; ++lane) {
                const int64_t channel = first + channel_of(j, lane);
                const int8_t* from = weights + channel * taps;
                int32_t sum = 0;
                for (int64_t tap = 0; tap < taps; ++tap) sum += from[tap];
                const int32_t begin = -int32_t{zero_point_} * sum;
                const float scale = scales[scales.size() == 1 ? 0 : static_cast<size_t>(channel)];
                const float offset = bias == nullptr ? 0.0F : bias[channel];
                const int64_t place = j * kBlock + lane * 4;
                std::memcpy(to + block.start + place, &begin, 4);
                std::memcpy(to + block.scale + place, &scale, 4);
                std::memcpy(to + block.bias + place, &offset, 4);
                for (int64_t column = 0; column < shape_.kernel_w; ++column)
                    for (int64_t row = 0; row < shape_.kernel_h; ++row)
                        to[block.weights + (column * groups_ + row / 4) * 4 * kBlock + place + row % 4] =
                            from[row * shape_.kernel_w + column];
            }
        }
    }
}

void QDepthwise::execute(const uint8_t* x, const char* packed, uint8_t* y) const {
    const DepthwiseShape& s = shape_;
    const int64_t extent = (s.kernel_w - 1) * s.dilation_w + 1;
    const int64_t tile = std::max<int64_t>(1, (kMostColumns - extent) / s.stride_w + 1);
    const int64_t lines = s.images * s.out_height;
    const int64_t block_bytes = Block(s.kernel_w * groups_).bytes;
    const int threads = lines * s.out_width * s.channels < kParallelWork ? 1 : omp_get_max_threads();
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t job = 0; job < lines; ++job) {
        const int64_t image = job / s.out_height;
        const int64_t row = job % s.out_height;
        alignas(64) uint8_t outside[Wide::kChannels];  // NOLINT: scratch
        std::memset(outside, zero_point_, sizeof outside);
        Line line{};
        line.groups = groups_;
        line.kernel_w = s.kernel_w;
        line.step = s.stride_w;
        line.dilation = s.dilation_w;
        line.width = s.width;
        line.stride = s.channels;
        line.zero_point = zero_point_;
        line.block_bytes = block_bytes;
        // Scaling keeps the order of numbers, so the clamp can wait until after it. Beyond ±1024 all bytes are saturated, and a
        // conversion to integers is still safe.
        line.low = std::max(low_ * type_.inverse_scale + type_.zero_point, -1024.0F);
        line.high = std::min(high_ * type_.inverse_scale + type_.zero_point, 1024.0F);
        line.inverse_scale = type_.inverse_scale;
        line.y_zero_point = type_.zero_point;
        line.to_i8 = type_.dtype == DType::i8;
        for (int64_t start = 0; start < s.channels;) {
            const bool wide = start + Wide::kChannels <= s.channels;
            const int64_t channel = wide ? start : std::min(start, s.channels - kBlock);
            line.packed = packed + start / kBlock * block_bytes;
            for (int64_t k = 0; k < kMostRows; ++k) {
                const int64_t at = row * s.stride_h - s.pad_top + k * s.dilation_h;
                const bool inside = k < s.kernel_h && at >= 0 && at < s.height;
                line.rows.at[k] =
                    inside ? x + (image * s.height + at) * s.width * s.channels + channel : outside;
                line.rows.step[k] = inside ? s.channels : 0;
            }
            for (int64_t first = 0; first < s.out_width; first += tile) {
                line.count = std::min(tile, s.out_width - first);
                line.first_column = first * s.stride_w - s.pad_left;
                line.columns = (line.count - 1) * s.stride_w + extent;
                line.y = y + (job * s.out_width + first) * s.channels + channel;
                wide ? run_line<Wide>(line) : run_line<Narrow>(line);
            }
            start += wide ? Wide::kChannels : kBlock;
        }
    }
}

bool build_q_depthwise(Builder& builder, const Node& node, const ConvGeometry& geometry) {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    const Tensor* weights = builder.constant(node.input(1));
    const Tensor* bias = builder.constant(node.input(2));
    const Shape& in = builder.shape(x);
    const Shape& out = builder.shape(y);
    const FloatTail tail = float_tail(node);
    const ResultType type = result_type(node.attributes);
    if (in.size() != 4 || geometry.groups != in[1] || in[1] != out[1] || builder.dtype(x) != DType::u8 ||
        type.dtype == DType::f32 || tail.ops.size() > 1 || (node.input(2) != nullptr && bias == nullptr))
        return false;
    float low = -std::numeric_limits<float>::infinity();
    float high = std::numeric_limits<float>::infinity();
    for (const PostOp& op : tail.ops) {
        if (op.name != "relu" && op.name != "clip") return false;
        low = op.name == "relu" ? 0.0F : op.alpha;
        if (op.name == "clip") high = op.beta;
    }
    const DepthwiseShape shape{in[0],
                               in[1],
                               in[2],
                               in[3],
                               out[2],
                               out[3],
                               geometry.kernel[0],
                               geometry.kernel[1],
                               geometry.strides[0],
                               geometry.strides[1],
                               geometry.dilations[0] + 1,
                               geometry.dilations[1] + 1,
                               geometry.pads_begin[0],
                               geometry.pads_begin[1]};
    if (!QDepthwise::supports(shape)) return false;
    const QDepthwise kernel(shape, static_cast<uint8_t>(node.attributes.get_int("x_zero_point")), type, low,
                            high);
    // Scales and bias are among the packed bytes, so these belong to this operator of this plan alone.
    Tensor packed(DType::u8, {static_cast<int64_t>(kernel.packed_bytes())});
    kernel.pack(weights->as<int8_t>().data(),
                scale_products(node.attributes.get_float("x_scale", 1.0F),
                               node.attributes.get_floats("w_scale", {1.0F})),
                bias == nullptr ? nullptr : bias->as<float>().data(),
                static_cast<char*>(packed.raw_mutable()));
    const Array numbers = builder.constant_array(packed);
    const Array source = builder.as(x, channels_last_desc(DType::u8, in));
    const Array result = builder.result(y, channels_last_desc(type.dtype, out));
    builder.add_native("depthwise:avx512_vnni", {source, numbers}, {result}, [=](Execution& execution) {
        kernel.execute(reinterpret_cast<const uint8_t*>(execution.address(source)),
                       execution.address(numbers), reinterpret_cast<uint8_t*>(execution.address(result)));
    });
    return true;
}

}  // namespace kilter::engine
