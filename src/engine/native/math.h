// exp, expm1, log, log1p and erf without branches, so that loops over them vectorize. Errors are below 2e-7, relative (erf: to 1).
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

//! (e^x - 1) / x on [-ln2/2, ln2/2]: the series to degree 7 of e^x leaves 5e-9.
KILTER_INLINE float exp_series(float x) {
    float sum = 1.98412698e-4F;
    sum = sum * x + 1.38888889e-3F;
    sum = sum * x + 8.33333333e-3F;
    sum = sum * x + 4.16666667e-2F;
    sum = sum * x + 1.66666667e-1F;
    sum = sum * x + 0.5F;
    return sum * x + 1.0F;
}

//! Adding it rounds numbers below 2^22 to integers, which then are the difference of the bits: the fraction is pushed out.
inline constexpr float kRounder = 12582912.0F;  // 1.5·2^23

KILTER_INLINE int32_t rounded_bits(float shifted) {
    return static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRounder));
}

KILTER_INLINE float vector_exp(float x) {
    // Beyond these the result is 0 or infinity anyway; the clamp keeps the integer part in range. NaN passes.
    float limited = x < -104.0F ? -104.0F : x;
    limited = limited > 89.0F ? 89.0F : limited;
    const float shifted = limited * 1.44269504F + kRounder;
    const float whole = shifted - kRounder;
    const int32_t n = rounded_bits(shifted);
    const float rest = (limited - whole * 0.693359375F) + whole * 2.12194440e-4F;  // ln 2 in two parts
    const float sum = exp_series(rest) * rest + 1.0F;
    // In two steps, since 2^n itself may be too small or too large for a float.
    const int32_t half = n >> 1;
    const float result = sum * power_of_two(half) * power_of_two(n - half);
    return x != x ? x : result;
}

//! exp(x) - 1 for x up to 0, without losing the digits of a small x; 0 for others.
KILTER_INLINE float vector_expm1(float x) {
    // Below -20 it is -1. NaN passes.
    float limited = x < -20.0F ? -20.0F : x;
    limited = limited > 0.0F ? 0.0F : limited;
    const float shifted = limited * 1.44269504F + kRounder;
    const float whole = shifted - kRounder;
    const float rest = (limited - whole * 0.693359375F) + whole * 2.12194440e-4F;
    const float power = power_of_two(rounded_bits(shifted));
    return exp_series(rest) * rest * power + (power - 1.0F);
}

//! log m for m in [sqrt(1/2), sqrt(2)): 2 atanh(s), the series to s^9.
KILTER_INLINE float log_series(float m) {
    const float s = (m - 1.0F) / (m + 1.0F);
    const float z = s * s;  // at most 0.0295
    float sum = 2.22222222e-1F;
    sum = sum * z + 2.85714286e-1F;
    sum = sum * z + 0.4F;
    sum = sum * z + 6.66666667e-1F;
    return 2.0F * s + s * z * sum;
}

KILTER_INLINE float vector_log(float x) {
    const bool tiny = x < 1.17549435e-38F;  // denormals are lifted into the normal range
    const float lifted = x * 8388608.0F;
    const float normal = tiny ? lifted : x;
    const uint32_t word = std::bit_cast<uint32_t>(normal);
    // The mantissa is taken from [sqrt(1/2), sqrt(2)), so that log is small near 1.
    const int32_t exponent = static_cast<int32_t>(word - 0x3F3504F3U) >> 23;
    const float mantissa = std::bit_cast<float>(word - (static_cast<uint32_t>(exponent) << 23));
    const float small = log_series(mantissa);
    const float n = static_cast<float>(exponent - (tiny ? 23 : 0));
    float result = n * 0.693359375F + (small - n * 2.12194440e-4F);
    result = x == std::numeric_limits<float>::infinity() ? x : result;
    result = x == 0.0F ? -std::numeric_limits<float>::infinity() : result;
    result = x < 0.0F ? std::numeric_limits<float>::quiet_NaN() : result;
    return x != x ? x : result;
}

//! log(1 + x) for x in [0, 1], without losing the digits of a small x. NaN passes.
KILTER_INLINE float vector_log1p(float x) {
    const float sum = 1.0F + x;
    // What rounding the sum took away. It counts where x is small, so it need not be divided by the sum.
    const float lost = x - (sum - 1.0F);
    const float halved = 0.5F * sum;
    const bool large = sum > 1.41421356F;
    const float small = log_series(large ? halved : sum) + lost;
    const float rest = large ? 0.693147181F : 0.0F;
    return small + rest;
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
