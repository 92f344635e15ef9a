// Element types of tensors, and what each one costs in memory.
// The names are the short ones of the field (f32, u8, …); `name` and `parse_dtype` are inverse to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kilter {

enum class DType : uint8_t {
    undefined,
    f32,
    f16,
    bf16,
    f64,
    boolean,
    i8,
    u8,
    i16,
    u16,
    i32,
    u32,
    i64,
    u64,
    i4,
    u4,
    i2,
    u2,
    f8e4m3fn,
    f8e4m3fnuz,
    f8e5m2,
    f8e5m2fnuz,
    f8e8m0,
    f4e2m1,
    complex64,
    complex128,
    string,
    sequence,  // a list of tensors
    nothing,   // an optional value that is absent
};

std::string_view name(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

//! Bits of one element; 0 for `string`, `sequence` and the like, whose storage is not a flat array.
int bits(DType dtype);
//! Is this the type of a tensor's elements? Sequences and absent optionals are values of a graph, but no tensors.
bool is_element(DType dtype);

//! Bytes of `count` elements; sub-byte types are packed, the last byte padded. Throws Error on overflow.
size_t byte_count(DType dtype, int64_t count);

bool is_float(DType dtype);
bool is_integer(DType dtype);  // signed and unsigned, not boolean
bool is_signed(DType dtype);

//! 16-bit floats are stored as their bits; arithmetic goes through float.
struct Half {
    uint16_t bits = 0;
    Half() = default;
    explicit Half(float value);
    explicit operator float() const;
    bool operator==(const Half&) const = default;
};

struct BFloat16 {
    uint16_t bits = 0;
    BFloat16() = default;
    explicit BFloat16(float value);
    explicit operator float() const;
    bool operator==(const BFloat16&) const = default;
};

template <class T>
inline constexpr DType dtype_of = DType::undefined;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<Half> = DType::f16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<bool> = DType::boolean;
template <>
inline constexpr DType dtype_of<int8_t> = DType::i8;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<int16_t> = DType::i16;
template <>
inline constexpr DType dtype_of<uint16_t> = DType::u16;
template <>
inline constexpr DType dtype_of<int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<uint32_t> = DType::u32;
template <>
inline constexpr DType dtype_of<int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<uint64_t> = DType::u64;

}  // namespace kilter
