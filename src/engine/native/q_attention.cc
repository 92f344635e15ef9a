#include "engine/native/q_attention.h"

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/native/copy.h"
#include "engine/native/q_sums.h"
#include "engine/native/q_tile.h"
#include "engine/native/vnni.h"
#include "ops/broadcast.h"

// _mm512_max_ps and others draw false warnings from GCC 12 (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace kilter::engine {
namespace {

constexpr int64_t kParallelWork = 1 << 18;  // multiplications that are worth waking other threads

constexpr int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

// Strides in elements: batch, head, row, column.
struct Attention {
    int64_t batch, heads, queries, keys, depth, width;  // width: of a value
    Shape q, k, v, mask, y;                             // k as [batch, head, key, depth]
    int32_t q_zero_point;
    float score_scale;
    ResultType type;
    std::vector<int64_t> key_panels, value_panels;  // their vectors

    int64_t padded_keys() const { return round_up(keys, kLanes); }
};

// What a thread works in, one part after the other.
struct Scratch {
    size_t keys = 0, values = 0, scores = 0, weights = 0, bytes = 0;

    explicit Scratch(const Attention& a) {
        const auto take = [&](int64_t size) {
            const size_t start = bytes;
            bytes += static_cast<size_t>(round_up(size, 64));
            return start;
        };
        keys = take(panel_bytes(a.depth, a.padded_keys() / kLanes));
        values = take(panel_bytes(a.padded_keys(), (a.width + kLanes - 1) / kLanes));
        scores = take(kTileRows * a.padded_keys() * 4);
        weights = take(kTileRows * a.padded_keys());
    }
};

struct Addresses {
    const uint8_t* q;
    const int8_t *k, *v;
    const float *mask, *value_scales;
    char *y, *scratch;
};

// The sum of each column, from the packed bytes: a product with ones.
KILTER_VNNI void add_up_columns(int64_t groups, int64_t vectors, char* panel) {
    const __m512i ones = _mm512_set1_epi8(1);
    for (int64_t v = 0; v < vectors; ++v) {
        __m512i sum = _mm512_setzero_si512();
        for (int64_t group = 1; group <= groups; ++group)
            sum = _mm512_dpbusd_epi32(sum, ones, _mm512_load_si512(panel + (group * vectors + v) * 64));
        _mm512_store_si512(panel + v * 64, sum);
    }
}

// Keys are the columns: four bytes of a key are neighbours in memory and in the panel.
void pack_keys(const Attention& a, const int8_t* keys, char* panel) {
    int64_t first = 0;
    for (const int64_t vectors : a.key_panels) {
        const int64_t step = vectors * kLanes * 4;
        char* groups = panel + step;
        for (int64_t column = 0; column < vectors * kLanes; ++column) {
            const int8_t* from = keys + std::min(first + column, a.keys - 1) * a.k[2];
            for (int64_t group = 0; group < a.depth / 4; ++group)
                std::memcpy(groups + group * step + column * 4, from + group * 4, 4);
        }
        add_up_columns(a.depth / 4, vectors, panel);
        first += vectors * kLanes;
        panel += panel_bytes(a.depth, vectors);
    }
}

// Values are the rows: four of them are interleaved. Weights of keys that are not there are zero, but what they meet must be
// some number, so rows beyond the last are zero, too.
KILTER_VNNI void pack_values(const Attention& a, const int8_t* values, char* panel) {
    int64_t first = 0;
    for (const int64_t vectors : a.value_panels) {
        std::memset(panel, 0,
                    static_cast<size_t>(vectors * kLanes * 4));  // values have no zero point: no sums
        for (int64_t group = 0; group < a.padded_keys() / 4; ++group) {
            for (int64_t v = 0; v < vectors; ++v) {
                const int64_t column = first + v * kLanes;
                const int64_t lanes = std::clamp<int64_t>(a.width - column, 0, kLanes);
                const auto mask = static_cast<__mmask16>((1U << lanes) - 1);
                __m128i row[4];  // NOLINT: registers
                for (int64_t i = 0; i < 4; ++i)
                    row[i] = _mm_maskz_loadu_epi8(4 * group + i < a.keys ? mask : __mmask16{0},
                                                  values + (4 * group + i) * a.v[2] + column);
                const __m128i low01 = _mm_unpacklo_epi8(row[0], row[1]);
                const __m128i high01 = _mm_unpackhi_epi8(row[0], row[1]);
                const __m128i low23 = _mm_unpacklo_epi8(row[2], row[3]);
                const __m128i high23 = _mm_unpackhi_epi8(row[2], row[3]);
                auto* to = reinterpret_cast<__m128i*>(panel + ((group + 1) * vectors + v) * 64);
                _mm_store_si128(to, _mm_unpacklo_epi16(low01, low23));
                _mm_store_si128(to + 1, _mm_unpackhi_epi16(low01, low23));
                _mm_store_si128(to + 2, _mm_unpacklo_epi16(high01, high23));
                _mm_store_si128(to + 3, _mm_unpackhi_epi16(high01, high23));
            }
        }
        first += vectors * kLanes;
        panel += panel_bytes(a.padded_keys(), vectors);
    }
}

// Scores of one panel as floats, with the mask; -∞ for keys that are not there.
KILTER_VNNI void scale_scores(const Attention& a, const int32_t* sums, int64_t rows, int64_t first,
                              int64_t vectors, const float* mask, float* scores) {
    const __m512 scale = _mm512_set1_ps(a.score_scale);
    const __m512 nothing = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
    const int64_t stride = a.padded_keys();
    for (int64_t v = 0; v < vectors; ++v) {
        const int64_t column = first + v * kLanes;
        const auto there =
            static_cast<__mmask16>((1U << std::clamp<int64_t>(a.keys - column, 0, kLanes)) - 1);
        for (int64_t r = 0; r < rows; ++r) {
            const __m512i sum = _mm512_load_si512(sums + r * kTileColumns + v * kLanes);
            __m512 t = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
            if (mask != nullptr)
                t = _mm512_add_ps(t, _mm512_maskz_loadu_ps(there, mask + r * a.mask[2] + column));
            _mm512_store_ps(scores + r * stride + column, _mm512_mask_mov_ps(nothing, there, t));
        }
    }
}

// e^x for x ≤ 0; 0 for -∞. 2^f is its series to degree 6 on [-1/2, 1/2], 1e-7 off.
KILTER_VNNI_INLINE __m512 exp_of(__m512 x) {
    const __m512 scaled =
        _mm512_max_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504F)), _mm512_set1_ps(-200.0F));
    const __m512 whole = _mm512_roundscale_ps(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 f = _mm512_sub_ps(scaled, whole);
    __m512 sum = _mm512_set1_ps(1.54035304e-4F);
    sum = _mm512_fmadd_ps(sum, f, _mm512_set1_ps(1.33335581e-3F));
    sum = _mm512_fmadd_ps(sum, f, _mm512_set1_ps(9.61812911e-3F));
    sum = _mm512_fmadd_ps(sum, f, _mm512_set1_ps(5.55041087e-2F));
    sum = _mm512_fmadd_ps(sum, f, _mm512_set1_ps(2.40226507e-1F));
    sum = _mm512_fmadd_ps(sum, f, _mm512_set1_ps(6.93147181e-1F));
    sum = _mm512_fmadd_ps(sum, f, _mm512_set1_ps(1.0F));
    return _mm512_scalef_ps(sum, whole);
}

// One row of scores becomes bytes in steps of 1/255.
KILTER_VNNI void softmax(float* scores, int64_t count, uint8_t* weights) {
    __m512 largest = _mm512_load_ps(scores);
    for (int64_t i = kLanes; i < count; i += kLanes)
        largest = _mm512_max_ps(largest, _mm512_load_ps(scores + i));
    const __m512 top = _mm512_set1_ps(_mm512_reduce_max_ps(largest));
    __m512 total = _mm512_setzero_ps();
    for (int64_t i = 0; i < count; i += kLanes) {
        const __m512 power = exp_of(_mm512_sub_ps(_mm512_load_ps(scores + i), top));
        total = _mm512_add_ps(total, power);
        _mm512_store_ps(scores + i, power);
    }
    const __m512 factor = _mm512_set1_ps(255.0F / _mm512_reduce_add_ps(total));
    for (int64_t i = 0; i < count; i += kLanes) {
        const __m512i rounded = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_load_ps(scores + i), factor));
        _mm_store_si128(reinterpret_cast<__m128i*>(weights + i), _mm512_cvtepi32_epi8(rounded));
    }
}

// Rows [first, last) of one head, at most kTileRows.
void attend(const Attention& a, const Scratch& scratch, const Addresses& at, int64_t head, int64_t first,
            int64_t last, char* memory) {
    alignas(64) int32_t sums[kTileRows * kTileColumns];  // NOLINT: scratch
    const int64_t rows = last - first;
    const auto place = [&](const Shape& strides) {
        return head / a.heads * strides[0] + head % a.heads * strides[1] + first * strides[2];
    };
    auto* scores = reinterpret_cast<float*>(memory + scratch.scores);
    const float* mask = at.mask == nullptr ? nullptr : at.mask + place(a.mask);
    int64_t column = 0;
    const char* panel = memory + scratch.keys;
    for (const int64_t vectors : a.key_panels) {
        multiply_tile(at.q + place(a.q), a.q[2], rows, panel, vectors, a.depth, a.q_zero_point, sums);
        scale_scores(a, sums, rows, column, vectors, mask, scores);
        column += vectors * kLanes;
        panel += panel_bytes(a.depth, vectors);
    }
    auto* weights = reinterpret_cast<uint8_t*>(memory + scratch.weights);
    const int64_t stride = a.padded_keys();
    for (int64_t r = 0; r < rows; ++r) softmax(scores + r * stride, stride, weights + r * stride);
    column = 0;
    panel = memory + scratch.values;
    for (const int64_t vectors : a.value_panels) {
        multiply_tile(weights, stride, rows, panel, vectors, stride, 0, sums);
        const int64_t element = place(a.y) + column;
        store_sums({}, a.type, vectors,
                   {sums,
                    rows,
                    std::min(vectors * kLanes, a.width - column),
                    a.y[2],
                    at.value_scales,
                    nullptr,
                    {},
                    at.y + element * (a.type.dtype == DType::f32 ? 4 : 1)});
        column += vectors * kLanes;
        panel += panel_bytes(stride, vectors);
    }
}

// Every thread takes the same share of blocks, head after head; it packs the keys and values of the heads it meets.
void attend_all(const Attention& a, const Scratch& scratch, const Addresses& at, int threads) {
    const int64_t blocks = (a.queries + kTileRows - 1) / kTileRows;
    const int64_t units = a.batch * a.heads * blocks;
    const bool large = a.batch * a.heads * a.queries * a.keys * a.depth >= kParallelWork;
#pragma omp parallel num_threads(threads) if (large && threads > 1)
    {
        const int64_t team = omp_get_num_threads();
        const int64_t self = omp_get_thread_num();
        char* memory = at.scratch + static_cast<size_t>(self) * scratch.bytes;
        int64_t packed = -1;
        for (int64_t unit = units * self / team; unit < units * (self + 1) / team; ++unit) {
            const int64_t head = unit / blocks;
            const int64_t block = unit % blocks;
            if (head != packed) {
                const auto place = [&](const Shape& strides) {
                    return head / a.heads * strides[0] + head % a.heads * strides[1];
                };
                pack_keys(a, at.k + place(a.k), memory + scratch.keys);
                pack_values(a, at.v + place(a.v), memory + scratch.values);
                packed = head;
            }
            attend(a, scratch, at, head, a.queries * block / blocks, a.queries * (block + 1) / blocks,
                   memory);
        }
    }
}

// The value with rows that lie whole in memory: as it stands, or copied. `along` is the axis of the rows' elements.
StridedArray with_whole_rows(Builder& builder, const Value* value, size_t along) {
    StridedArray found = strided(builder, value);
    if (found.strides[along] == 1 || builder.shape(value)[along] == 1) return found;
    const Shape& shape = builder.shape(value);
    Shape strides = row_major_strides(shape);
    if (along == 2) strides = {strides[0], strides[1], 1, shape[2]};
    const dnnl::memory::desc desc(shape, dnnl_type(builder.dtype(value)), strides);
    return {builder.as(value, desc), strides};
}

}  // namespace

bool build_q_attention(Builder& builder, const Node& node) {
    const Attributes& given = node.attributes;
    const Value* mask = node.input(3);
    const Shape& y_shape = builder.shape(node.output(0));
    const Shape& q_shape = builder.shape(node.input(0));
    const bool k_transposed = given.get_int("k_transposed") != 0;
    if (!has_vnni() || has_amx() || builder.dtype(node.input(0)) != DType::u8 ||
        builder.dtype(node.input(1)) != DType::i8 || builder.dtype(node.input(2)) != DType::i8 ||
        q_shape[3] % 4 != 0)
        return false;
    // Heads that several queries share have no stride here.
    for (const size_t index : {size_t{1}, size_t{2}}) {
        const Shape& shape = builder.shape(node.input(index));
        if (shape[0] != y_shape[0] || shape[1] != y_shape[1]) return false;
    }
    if (q_shape[0] != y_shape[0] || q_shape[1] != y_shape[1]) return false;
    const int64_t keys = builder.shape(node.input(2))[2];
    Shape mask_strides(4, 0);
    if (mask != nullptr) {
        Shape shape = builder.shape(mask);
        if (builder.dtype(mask) != DType::f32 || shape.size() > 4) return false;
        shape.insert(shape.begin(), 4 - shape.size(), 1);
        if (shape[3] != keys) return false;
        mask_strides = row_major_strides(shape);
        for (size_t i = 0; i < 4; ++i)
            if (shape[i] == 1) mask_strides[i] = 0;
    }

    const StridedArray q = with_whole_rows(builder, node.input(0), 3);
    const StridedArray k = with_whole_rows(builder, node.input(1), k_transposed ? 2 : 3);
    const StridedArray v = with_whole_rows(builder, node.input(2), 3);
    const ResultType type = result_type(given);
    // Heads are written side by side, as the projection that follows reads them.
    const Shape y_strides{y_shape[2] * y_shape[1] * y_shape[3], y_shape[3], y_shape[1] * y_shape[3], 1};
    const float qk = given.get_float("q_scale", 1.0F) * given.get_float("k_scale", 1.0F);
    const Attention attention{
        y_shape[0],
        y_shape[1],
        y_shape[2],
        keys,
        q_shape[3],
        y_shape[3],
        q.strides,
        k_transposed ? Shape{k.strides[0], k.strides[1], k.strides[3], k.strides[2]} : k.strides,
        v.strides,
        mask_strides,
        y_strides,
        static_cast<int32_t>(given.get_int("q_zero_point")),
        qk * given.get_float("scale", 1.0F),
        type,
        panel_widths(keys),
        panel_widths(y_shape[3])};
    const Scratch scratch(attention);
    const int threads = std::max(1, builder.options().threads);
    const float value_scale = given.get_float("v_scale", 1.0F) * (1.0F / 255.0F);
    const Array value_scales =
        builder.constant_array(Tensor::filled(DType::f32, {kTileColumns}, static_cast<double>(value_scale)));
    const Array memory = builder.scratch(scratch.bytes * static_cast<size_t>(threads));
    std::vector<Array> reads{q.array, k.array, v.array, value_scales};
    Array added;
    if (mask != nullptr) reads.push_back(added = builder.dense(mask));
    const Array result = builder.result(
        node.output(0), dnnl::memory::desc(y_shape, dnnl_type(type.dtype), dnnl::memory::dims(y_strides)));
    builder.add_native("fused:avx512_vnni", reads, {result, memory}, [=](Execution& execution) {
        const Addresses at{reinterpret_cast<const uint8_t*>(execution.address(q.array)),
                           reinterpret_cast<const int8_t*>(execution.address(k.array)),
                           reinterpret_cast<const int8_t*>(execution.address(v.array)),
                           added.valid() ? reinterpret_cast<const float*>(execution.address(added)) : nullptr,
                           reinterpret_cast<const float*>(execution.address(value_scales)),
                           execution.address(result),
                           execution.address(memory)};
        attend_all(attention, scratch, at, threads);
    });
    return true;
}

}  // namespace kilter::engine
