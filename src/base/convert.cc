#include "base/convert.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/fail.h"

namespace kilter {
namespace {

template <class T>
T read(const void* data, int64_t index) {
    T value;
    std::memcpy(&value, static_cast<const std::byte*>(data) + static_cast<size_t>(index) * sizeof(T),
                sizeof(T));
    return value;
}

template <class T>
void write(void* data, int64_t index, T value) {
    std::memcpy(static_cast<std::byte*>(data) + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
}

uint8_t read_packed(const void* data, int64_t index, int width) {
    const int per_byte = 8 / width;
    const uint8_t byte = static_cast<const uint8_t*>(data)[index / per_byte];
    return static_cast<uint8_t>((byte >> (index % per_byte * width)) & ((1 << width) - 1));
}

void write_packed(void* data, int64_t index, int width, uint8_t value) {
    const int per_byte = 8 / width;
    uint8_t& byte = static_cast<uint8_t*>(data)[index / per_byte];
    const int shift = static_cast<int>(index % per_byte) * width;
    const int mask = ((1 << width) - 1) << shift;
    byte = static_cast<uint8_t>((byte & ~mask) | ((value << shift) & mask));
}

// A small float format: sign? exponent, mantissa, and how it spells infinity and NaN.
struct SmallFloat {
    int exponent_bits, mantissa_bits, bias;
    bool infinities;                 // the largest exponent is kept for infinity and NaN, as in IEEE
    bool only_negative_zero_is_nan;  // the "fnuz" formats
    bool is_signed = true;
    bool has_nan = true;
};

SmallFloat small_float(DType dtype) {
    switch (dtype) {
        case DType::f8e4m3fn:
            return {4, 3, 7, false, false};
        case DType::f8e4m3fnuz:
            return {4, 3, 8, false, true};
        case DType::f8e5m2:
            return {5, 2, 15, true, false};
        case DType::f8e5m2fnuz:
            return {5, 2, 16, false, true};
        case DType::f8e8m0:
            return {8, 0, 127, false, false, false};
        default:
            return {2, 1, 1, false, false, true, false};  // f4e2m1
    }
}

double decode(DType dtype, uint8_t word) {
    const SmallFloat format = small_float(dtype);
    if (dtype == DType::f8e8m0) return word == 0xFF ? std::nan("") : std::ldexp(1.0, word - 127);
    const int width = 1 + format.exponent_bits + format.mantissa_bits;
    const bool negative = ((word >> (width - 1)) & 1) != 0;
    const int exponent = (word >> format.mantissa_bits) & ((1 << format.exponent_bits) - 1);
    const int mantissa = word & ((1 << format.mantissa_bits) - 1);
    const int top = (1 << format.exponent_bits) - 1;
    if (format.only_negative_zero_is_nan) {
        if (word == 0x80) return std::nan("");
    } else if (format.infinities && exponent == top) {
        if (mantissa != 0) return std::nan("");
        return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    } else if (format.has_nan && exponent == top && mantissa == (1 << format.mantissa_bits) - 1) {
        return std::nan("");
    }
    const double fraction = std::ldexp(mantissa, -format.mantissa_bits);
    const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - format.bias)
                                           : std::ldexp(1.0 + fraction, exponent - format.bias);
    return negative ? -magnitude : magnitude;
}

// Nearest representable value, ties to the even code; found by search, since the formats have at most 256 codes.
uint8_t encode(DType dtype, double value, bool saturate) {
    const SmallFloat format = small_float(dtype);
    const int width = (format.is_signed ? 1 : 0) + format.exponent_bits + format.mantissa_bits;
    const int positive_codes = 1 << (width - (format.is_signed ? 1 : 0));
    const uint8_t sign = static_cast<uint8_t>(format.is_signed && std::signbit(value) ? 1 << (width - 1) : 0);
    int nan_code = 0;
    int infinity_code = -1;
    int largest = 0;
    for (int code = 0; code < positive_codes; ++code) {
        const double decoded = decode(dtype, static_cast<uint8_t>(code));
        if (std::isnan(decoded))
            nan_code = code;
        else if (std::isinf(decoded))
            infinity_code = code;
        else
            largest = code;
    }
    if (format.only_negative_zero_is_nan) nan_code = 0x80;
    if (std::isnan(value))
        return static_cast<uint8_t>(format.only_negative_zero_is_nan ? nan_code : sign | nan_code);
    const double magnitude = std::fabs(value);
    const double top = decode(dtype, static_cast<uint8_t>(largest));
    const double below_top = decode(dtype, static_cast<uint8_t>(largest - 1));
    const double limit = top + (top - below_top) / 2;
    // Values that round past the largest finite one: saturate, or become infinity (NaN where there is none).
    if (magnitude > limit || (magnitude == limit && (largest & 1) != 0)) {
        const int overflow = infinity_code >= 0 ? infinity_code : nan_code;
        if (saturate || !format.has_nan) return static_cast<uint8_t>(sign | largest);
        return static_cast<uint8_t>(format.only_negative_zero_is_nan ? nan_code : sign | overflow);
    }
    int best = 0;
    for (int code = 1; code <= largest; ++code) {
        const double step = std::fabs(decode(dtype, static_cast<uint8_t>(code)) - magnitude);
        const double held = std::fabs(decode(dtype, static_cast<uint8_t>(best)) - magnitude);
        if (step < held || (step == held && code % 2 == 0)) best = code;
    }
    if (best == 0 && format.only_negative_zero_is_nan) return 0;
    return static_cast<uint8_t>(sign | best);
}

// Casts out of range are undefined in C++; wrap like the two's complement hardware of NumPy does.
int64_t truncate(double value) {
    if (std::isnan(value)) return std::numeric_limits<int64_t>::min();
    if (value >= 9223372036854775808.0) {
        if (value < 18446744073709551616.0) return static_cast<int64_t>(static_cast<uint64_t>(value));
        return std::numeric_limits<int64_t>::max();
    }
    if (value <= -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
    return static_cast<int64_t>(value);
}

bool is_small_float(DType dtype) { return dtype >= DType::f8e4m3fn && dtype <= DType::f4e2m1; }

}  // namespace

int64_t load_int(DType dtype, const void* data, int64_t index) {
    switch (dtype) {
        case DType::boolean:
            return read<uint8_t>(data, index) != 0;
        case DType::i8:
            return read<int8_t>(data, index);
        case DType::u8:
            return read<uint8_t>(data, index);
        case DType::i16:
            return read<int16_t>(data, index);
        case DType::u16:
            return read<uint16_t>(data, index);
        case DType::i32:
            return read<int32_t>(data, index);
        case DType::u32:
            return read<uint32_t>(data, index);
        case DType::i64:
            return read<int64_t>(data, index);
        case DType::u64:
            return static_cast<int64_t>(read<uint64_t>(data, index));
        case DType::u4:
            return read_packed(data, index, 4);
        case DType::i4:
            return (read_packed(data, index, 4) ^ 8) - 8;
        case DType::u2:
            return read_packed(data, index, 2);
        case DType::i2:
            return (read_packed(data, index, 2) ^ 2) - 2;
        default:
            fail("expected integers, found a tensor of {}", name(dtype));
    }
}

double load_double(DType dtype, const void* data, int64_t index) {
    switch (dtype) {
        case DType::f32:
            return read<float>(data, index);
        case DType::f64:
            return read<double>(data, index);
        case DType::f16:
            return static_cast<float>(read<Half>(data, index));
        case DType::bf16:
            return static_cast<float>(read<BFloat16>(data, index));
        case DType::u64:
            return static_cast<double>(read<uint64_t>(data, index));
        case DType::f4e2m1:
            return decode(dtype, read_packed(data, index, 4));
        default:
            if (is_small_float(dtype)) return decode(dtype, read<uint8_t>(data, index));
            return static_cast<double>(load_int(dtype, data, index));
    }
}

void store_int(DType dtype, void* data, int64_t index, int64_t value) {
    switch (dtype) {
        case DType::boolean:
            return write<uint8_t>(data, index, value != 0 ? 1 : 0);
        case DType::i8:
        case DType::u8:
            return write<uint8_t>(data, index, static_cast<uint8_t>(value));
        case DType::i16:
        case DType::u16:
            return write<uint16_t>(data, index, static_cast<uint16_t>(value));
        case DType::i32:
        case DType::u32:
            return write<uint32_t>(data, index, static_cast<uint32_t>(value));
        case DType::i64:
        case DType::u64:
            return write<int64_t>(data, index, value);
        case DType::i4:
        case DType::u4:
            return write_packed(data, index, 4, static_cast<uint8_t>(value & 15));
        case DType::i2:
        case DType::u2:
            return write_packed(data, index, 2, static_cast<uint8_t>(value & 3));
        default:
            return store_double(dtype, data, index, static_cast<double>(value));
    }
}

void store_double(DType dtype, void* data, int64_t index, double value) {
    switch (dtype) {
        case DType::f32:
            return write<float>(data, index, static_cast<float>(value));
        case DType::f64:
            return write<double>(data, index, value);
        case DType::f16:
            return write<Half>(data, index, Half(static_cast<float>(value)));
        case DType::bf16:
            return write<BFloat16>(data, index, BFloat16(static_cast<float>(value)));
        case DType::boolean:
            return write<uint8_t>(data, index, value != 0 ? 1 : 0);
        case DType::f4e2m1:
            return write_packed(data, index, 4, encode(dtype, value, true));
        default:
            if (is_small_float(dtype)) return write<uint8_t>(data, index, encode(dtype, value, true));
            if (is_integer(dtype)) return store_int(dtype, data, index, truncate(value));
            fail("cannot store numbers in a tensor of {}", name(dtype));
    }
}

Tensor convert(const Tensor& tensor, DType dtype, bool saturate) {
    Tensor result(dtype, tensor.shape());
    const bool integers =
        (is_integer(tensor.dtype()) || tensor.dtype() == DType::boolean) && is_integer(dtype);
    if (bits(dtype) < 8 && result.bytes() > 0) std::memset(result.raw_mutable(), 0, result.bytes());
    for (int64_t i = 0; i < tensor.size(); ++i) {
        if (integers) {
            store_int(dtype, result.raw_mutable(), i, load_int(tensor.dtype(), tensor.raw(), i));
        } else if (is_small_float(dtype) && dtype != DType::f4e2m1) {
            write<uint8_t>(result.raw_mutable(), i,
                           encode(dtype, load_double(tensor.dtype(), tensor.raw(), i), saturate));
        } else {
            store_double(dtype, result.raw_mutable(), i, load_double(tensor.dtype(), tensor.raw(), i));
        }
    }
    return result;
}

}  // namespace kilter
