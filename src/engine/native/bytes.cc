#include "engine/native/bytes.h"

#include <cstring>

#include "engine/native/bytes_inline.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kilter::engine {
namespace {

KILTER_INLINE void quantize_row_body(const float* x, int64_t count, float scale, int zero_point, float low,
                                     float high, uint8_t* y) {
    for (int64_t i = 0; i < count; ++i)
        y[i] = static_cast<uint8_t>(rounded_byte(x[i] / scale, low, high) + zero_point);
}
KILTER_SIMD(quantize_row,
            (const float* x, int64_t count, float scale, int zero_point, float low, float high, uint8_t* y),
            x, count, scale, zero_point, low, high, y)

template <class T>
KILTER_INLINE void widen_row(const T* x, int64_t count, float scale, int zero_point, float* y) {
    for (int64_t i = 0; i < count; ++i)
        y[i] = static_cast<float>(static_cast<int>(x[i]) - zero_point) * scale;
}
KILTER_INLINE void widen_unsigned_body(const uint8_t* x, int64_t count, float scale, int zero_point,
                                       float* y) {
    widen_row(x, count, scale, zero_point, y);
}
KILTER_SIMD(widen_unsigned, (const uint8_t* x, int64_t count, float scale, int zero_point, float* y), x,
            count, scale, zero_point, y)
KILTER_INLINE void widen_signed_body(const int8_t* x, int64_t count, float scale, int zero_point, float* y) {
    widen_row(x, count, scale, zero_point, y);
}
KILTER_SIMD(widen_signed, (const int8_t* x, int64_t count, float scale, int zero_point, float* y), x, count,
            scale, zero_point, y)

template <class T>
KILTER_INLINE void widen_columns(const T* x, int64_t count, const float* scales, const float* zero_points,
                                 float* y) {
    for (int64_t i = 0; i < count; ++i) y[i] = (static_cast<float>(x[i]) - zero_points[i]) * scales[i];
}
KILTER_INLINE void widen_unsigned_columns_body(const uint8_t* x, int64_t count, const float* scales,
                                               const float* zero_points, float* y) {
    widen_columns(x, count, scales, zero_points, y);
}
KILTER_SIMD(widen_unsigned_columns,
            (const uint8_t* x, int64_t count, const float* scales, const float* zero_points, float* y), x,
            count, scales, zero_points, y)
KILTER_INLINE void widen_signed_columns_body(const int8_t* x, int64_t count, const float* scales,
                                             const float* zero_points, float* y) {
    widen_columns(x, count, scales, zero_points, y);
}
KILTER_SIMD(widen_signed_columns,
            (const int8_t* x, int64_t count, const float* scales, const float* zero_points, float* y), x,
            count, scales, zero_points, y)

KILTER_INLINE void requantize_row_body(const float* t, int64_t count, float inverse, float zero_point,
                                       float low, float high, uint8_t* y) {
    for (int64_t i = 0; i < count; ++i) {
        const float scaled = t[i] * inverse;
        y[i] = rounded_byte(scaled + zero_point, low, high);
    }
}
KILTER_SIMD(requantize_row,
            (const float* t, int64_t count, float inverse, float zero_point, float low, float high,
             uint8_t* y),
            t, count, inverse, zero_point, low, high, y)

#if defined(__x86_64__)
// Two tables of 128 bytes in four registers; the highest bit of the index chooses between them.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) int64_t look_up_vectors(const uint8_t* x,
                                                                               int64_t count,
                                                                               const uint8_t* table,
                                                                               uint8_t* y) {
    const __m512i t0 = _mm512_loadu_si512(table);
    const __m512i t1 = _mm512_loadu_si512(table + 64);
    const __m512i t2 = _mm512_loadu_si512(table + 128);
    const __m512i t3 = _mm512_loadu_si512(table + 192);
    int64_t i = 0;
    for (; i + 64 <= count; i += 64) {
        const __m512i index = _mm512_loadu_si512(x + i);
        const __m512i low = _mm512_permutex2var_epi8(t0, index, t1);
        const __m512i high = _mm512_permutex2var_epi8(t2, index, t3);
        _mm512_storeu_si512(y + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high));
    }
    return i;
}

bool has_byte_permutes() {
    static const bool found = isa() == Isa::avx512 && __builtin_cpu_supports("avx512vbmi");
    return found;
}
#endif

}  // namespace

void quantize(const float* x, int64_t count, float scale, int64_t zero_point, DType dtype, char* y) {
    const auto zero = static_cast<int>(zero_point);
    const float low = static_cast<float>((dtype == DType::u8 ? 0 : -128) - zero);
    quantize_row(x, count, scale, zero, low, low + 255.0F, reinterpret_cast<uint8_t*>(y));
}

void dequantize(const char* x, DType dtype, int64_t count, float scale, int64_t zero_point, float* y) {
    const auto zero = static_cast<int>(zero_point);
    if (dtype == DType::u8)
        widen_unsigned(reinterpret_cast<const uint8_t*>(x), count, scale, zero, y);
    else
        widen_signed(reinterpret_cast<const int8_t*>(x), count, scale, zero, y);
}

void dequantize_columns(const char* x, DType dtype, int64_t count, const float* scales,
                        const float* zero_points, float* y) {
    if (dtype == DType::u8)
        widen_unsigned_columns(reinterpret_cast<const uint8_t*>(x), count, scales, zero_points, y);
    else
        widen_signed_columns(reinterpret_cast<const int8_t*>(x), count, scales, zero_points, y);
}

void requantize(const float* t, int64_t count, const ResultType& type, char* y) {
    const float low = type.dtype == DType::u8 ? 0.0F : -128.0F;
    requantize_row(t, count, type.inverse_scale, type.zero_point, low, low + 255.0F,
                   reinterpret_cast<uint8_t*>(y));
}

void look_up(const char* x, int64_t count, const char* table, char* y) {
    const auto* from = reinterpret_cast<const uint8_t*>(x);
    const auto* entries = reinterpret_cast<const uint8_t*>(table);
    auto* to = reinterpret_cast<uint8_t*>(y);
    int64_t i = 0;
#if defined(__x86_64__)
    if (has_byte_permutes()) i = look_up_vectors(from, count, entries, to);
#endif
    for (; i < count; ++i) to[i] = entries[from[i]];
}

}  // namespace kilter::engine
