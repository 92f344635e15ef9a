#include "kilter/base/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/fail.h"

namespace kilter {
namespace {

struct Traits {
    DType dtype;
    std::string_view name;
    int bits;
};

constexpr std::array<Traits, 29> kTraits{{
    {DType::undefined, "undefined", 0},
    {DType::f32, "f32", 32},
    {DType::f16, "f16", 16},
    {DType::bf16, "bf16", 16},
    {DType::f64, "f64", 64},
    {DType::boolean, "bool", 8},
    {DType::i8, "i8", 8},
    {DType::u8, "u8", 8},
    {DType::i16, "i16", 16},
    {DType::u16, "u16", 16},
    {DType::i32, "i32", 32},
    {DType::u32, "u32", 32},
    {DType::i64, "i64", 64},
    {DType::u64, "u64", 64},
    {DType::i4, "i4", 4},
    {DType::u4, "u4", 4},
    {DType::i2, "i2", 2},
    {DType::u2, "u2", 2},
    {DType::f8e4m3fn, "f8e4m3fn", 8},
    {DType::f8e4m3fnuz, "f8e4m3fnuz", 8},
    {DType::f8e5m2, "f8e5m2", 8},
    {DType::f8e5m2fnuz, "f8e5m2fnuz", 8},
    {DType::f8e8m0, "f8e8m0", 8},
    {DType::f4e2m1, "f4e2m1", 4},
    {DType::complex64, "complex64", 64},
    {DType::complex128, "complex128", 128},
    {DType::string, "string", 0},
    {DType::sequence, "sequence", 0},
    {DType::nothing, "nothing", 0},
}};

const Traits& traits(DType dtype) { return kTraits[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view name(DType dtype) { return traits(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
    for (const Traits& entry : kTraits)
        if (entry.name == name) return entry.dtype;
    return std::nullopt;
}

int bits(DType dtype) { return traits(dtype).bits; }

bool is_element(DType dtype) { return dtype != DType::sequence && dtype != DType::nothing; }

size_t byte_count(DType dtype, int64_t count) {
    const auto width = static_cast<uint64_t>(bits(dtype));
    if (width == 0) return 0;
    const auto elements = static_cast<uint64_t>(count);
    require(count >= 0 && elements <= (std::numeric_limits<uint64_t>::max() - 7) / width,
            "a tensor of {} {} elements is too large to address", count, name(dtype));
    return (elements * width + 7) / 8;
}

bool is_float(DType dtype) {
    switch (dtype) {
        case DType::f32:
        case DType::f16:
        case DType::bf16:
        case DType::f64:
            return true;
        default:
            return false;
    }
}

bool is_integer(DType dtype) { return (dtype >= DType::i8 && dtype <= DType::u2); }

bool is_signed(DType dtype) {
    switch (dtype) {
        case DType::i8:
        case DType::i16:
        case DType::i32:
        case DType::i64:
        case DType::i4:
        case DType::i2:
            return true;
        default:
            return is_float(dtype);
    }
}

Half::Half(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (word >> 16) & 0x8000U;
    const uint32_t magnitude = word & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) {  // NaN keeps a payload bit
        bits = static_cast<uint16_t>(sign | 0x7E00U);
        return;
    }
    if (magnitude >= 0x47800000U) {  // 65536 and above; rounding from 65520 up is handled below
        bits = static_cast<uint16_t>(sign | 0x7C00U);
        return;
    }
    if (magnitude < 0x38800000U) {  // subnormal in half: the float adder rounds to nearest even for us
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        bits =
            static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5F)));
        return;
    }
    const uint32_t odd = (magnitude >> 13) & 1U;
    bits = static_cast<uint16_t>(sign | ((magnitude - 0x38000000U + 0xFFFU + odd) >> 13));
}

Half::operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1FU;
    const uint32_t mantissa = bits & 0x3FFU;
    if (exponent == 0) {
        const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
        return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
    }
    const uint32_t wide = exponent == 31 ? 0x7F800000U : (exponent + 112) << 23;
    return std::bit_cast<float>(sign | wide | (mantissa << 13));
}

BFloat16::BFloat16(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    if ((word & 0x7FFFFFFFU) > 0x7F800000U) {
        bits = static_cast<uint16_t>((word >> 16) | 0x40U);
        return;
    }
    bits = static_cast<uint16_t>((word + 0x7FFFU + ((word >> 16) & 1U)) >> 16);
}

BFloat16::operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace kilter
