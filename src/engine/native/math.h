// exp, log and erf without branches, so that loops over them vectorize. Errors are below 2e-7, relative (erf: to 1).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "engine/native/simd.h"

namespace kilter::engine {

//! 2^n for n in [-126, 127].
KILTER_INLINE float power_of_two(int32_t n) {
    return std::bit_cast<float>(static_cast<uint32_t>(n + 127) << 23);
}

KILTER_INLINE float vector_exp(float x) {
    // Beyond these the result is 0 or infinity anyway; the clamp keeps the integer part in range. NaN passes.
    float limited = x < -104.0F ? -104.0F : x;
    limited = limited > 89.0F ? 89.0F : limited;
    const float scaled = limited * 1.44269504F;
    // Rounds to the nearest integer: adding 1.5·2^23 pushes the fraction out.
    const float shifted = scaled + 12582912.0F;
    const float whole = shifted - 12582912.0F;
    const auto n =
        static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(12582912.0F));
    const float rest = (limited - whole * 0.693359375F) + whole * 2.12194440e-4F;  // ln 2 in two parts
    // The series to degree 7 leaves 5e-9 on [-ln2/2, ln2/2].
    float sum = 1.98412698e-4F;
    sum = sum * rest + 1.38888889e-3F;
    sum = sum * rest + 8.33333333e-3F;
    sum = sum * rest + 4.16666667e-2F;
    sum = sum * rest + 1.66666667e-1F;
    sum = sum * rest + 0.5F;
    sum = sum * rest + 1.0F;
    sum = sum * rest + 1.0F;
    // In two steps, since 2^n itself may be too small or too large for a float.
    const int32_t half = n >> 1;
    const float result = sum * power_of_two(half) * power_of_two(n - half);
    return x != x ? x : result;
}

KILTER_INLINE float vector_log(float x) {
    const bool tiny = x < 1.17549435e-38F;  // denormals are lifted into the normal range
    const float lifted = x * 8388608.0F;
    const float normal = tiny ? lifted : x;
    const uint32_t word = std::bit_cast<uint32_t>(normal);
    // The mantissa is taken from [sqrt(1/2), sqrt(2)), so that log is small near 1.
    const int32_t exponent = static_cast<int32_t>(word - 0x3F3504F3U) >> 23;
    const float mantissa = std::bit_cast<float>(word - (static_cast<uint32_t>(exponent) << 23));
    const float s = (mantissa - 1.0F) / (mantissa + 1.0F);
    const float z = s * s;  // at most 0.0295: log m = 2 atanh(s), the series to s^9
    float sum = 2.22222222e-1F;
    sum = sum * z + 2.85714286e-1F;
    sum = sum * z + 0.4F;
    sum = sum * z + 6.66666667e-1F;
    const float small = 2.0F * s + s * z * sum;
    const float n = static_cast<float>(exponent - (tiny ? 23 : 0));
    float result = n * 0.693359375F + (small - n * 2.12194440e-4F);
    result = x == std::numeric_limits<float>::infinity() ? x : result;
    result = x == 0.0F ? -std::numeric_limits<float>::infinity() : result;
    result = x < 0.0F ? std::numeric_limits<float>::quiet_NaN() : result;
    return x != x ? x : result;
}

KILTER_INLINE float vector_erf(float x) {
    const float size = x < 0.0F ? -x : x;
    // Below 1: x · P(x²). Above: 1 - exp(Q(x)), where Q fits log erfc on [1, 4]; erf(4) is 1 in a float.
    // Coefficients: least squares with weights raised where the error is largest, in double.
    const float t = size * size;
    float p = -5.46294323e-4F;
    p = p * t + 4.87070763e-3F;
    p = p * t - 2.66638156e-2F;
    p = p * t + 1.12780645e-1F;
    p = p * t - 3.76119405e-1F;
    p = p * t + 1.12837887F;
    const float below = size * p;
    const float b = size > 4.0F ? 4.0F : size;
    float q = 1.85575409e-4F;
    q = q * b - 2.93962052e-3F;
    q = q * b + 2.18053702e-2F;
    q = q * b - 1.03037477e-1F;
    q = q * b - 6.38225555e-1F;
    q = q * b - 1.12704015F;
    q = q * b - 3.53702810e-4F;
    const float above = 1.0F - vector_exp(q);
    const float magnitude = size < 1.0F ? below : above;
    const float result = x < 0.0F ? -magnitude : magnitude;
    return x != x ? x : result;
}

}  // namespace kilter::engine
