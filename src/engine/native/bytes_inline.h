// The pieces of byte kernels that their loops inline.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/native/simd.h"

namespace kilter::engine {

// Adding it to a number below 2^22 rounds half to even and leaves the integer in the low bits: unlike calls of nearbyint,
// loops with an addition become vector code on every machine.
constexpr float kRoundingShift = 12582912.0F;  // 1.5·2^23

KILTER_INLINE uint8_t rounded_byte(float value, float low, float high) {
    value = value > low ? value : low;  // in this order NaN becomes low
    value = value < high ? value : high;
    return static_cast<uint8_t>(std::bit_cast<uint32_t>(value + kRoundingShift));
}

}  // namespace kilter::engine
