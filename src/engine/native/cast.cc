// Cast between the element types that models use at run time. Meaning: base/convert.h; out-of-range numbers wrap there, too.
#include <bit>
#include <cmath>
#include <limits>

#include "engine/builder.h"
#include "engine/native/loop.h"
#include "engine/native/simd.h"

namespace kilter::engine {
namespace {

// Out-of-range numbers and NaN, rare enough to go one by one.
int64_t truncate(double value) {
    if (std::isnan(value) || value <= -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
    if (value >= 18446744073709551616.0) return std::numeric_limits<int64_t>::max();
    if (value >= 9223372036854775808.0) return static_cast<int64_t>(static_cast<uint64_t>(value));
    return static_cast<int64_t>(value);
}

template <class To>
KILTER_INLINE void float_to_integers(const float* x, To* y, int64_t n) {
    // Through 32 bits where they suffice: those conversions vectorize everywhere.
    using Through = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
    const float limit = sizeof(To) == 8 ? 9.2233720e18F : 2147483520.0F;
    bool inside = true;
    for (int64_t i = 0; i < n; ++i) inside &= x[i] < limit && x[i] > -limit;
    if (inside) {
        for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(static_cast<Through>(x[i]));
    } else {
        for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(truncate(x[i]));
    }
}

KILTER_INLINE void to_i32_body(const float* x, int32_t* y, int64_t n) { float_to_integers(x, y, n); }
KILTER_SIMD(to_i32, (const float* x, int32_t* y, int64_t n), x, y, n)
KILTER_INLINE void to_i64_body(const float* x, int64_t* y, int64_t n) { float_to_integers(x, y, n); }
KILTER_SIMD(to_i64, (const float* x, int64_t* y, int64_t n), x, y, n)

KILTER_INLINE void widen_body(const uint16_t* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::bit_cast<float>(static_cast<uint32_t>(x[i]) << 16);
}
KILTER_SIMD(widen, (const uint16_t* x, float* y, int64_t n), x, y, n)

template <class From, class To>
void convert_row(const From* x, To* y, int64_t n) {
    if constexpr (std::is_same_v<From, float> && std::is_same_v<To, int32_t>) {
        to_i32(x, y, n);
    } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, int64_t>) {
        to_i64(x, y, n);
    } else if constexpr (std::is_same_v<From, BFloat16> && std::is_same_v<To, float>) {
        widen(reinterpret_cast<const uint16_t*>(x), y, n);
    } else if constexpr (std::is_same_v<To, bool>) {
        for (int64_t i = 0; i < n; ++i) {
            if constexpr (std::is_arithmetic_v<From>)
                y[i] = x[i] != From{0};
            else
                y[i] = static_cast<float>(x[i]) != 0.0F;
        }
    } else if constexpr (std::is_integral_v<To>) {
        if constexpr (std::is_integral_v<From>) {
            for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(x[i]);
        } else {
            for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(truncate(static_cast<float>(x[i])));
        }
    } else {
        // Through double first, as 64-bit integers round once there.
        using Through = std::conditional_t<std::is_integral_v<From>, double, float>;
        for (int64_t i = 0; i < n; ++i)
            y[i] = static_cast<To>(static_cast<float>(static_cast<Through>(x[i])));
    }
}

using Convert = void (*)(const void*, void*, int64_t);

template <class From, class To>
void convert_bytes(const void* x, void* y, int64_t n) {
    // A boolean in memory may be any byte.
    using Stored = std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
    if constexpr (std::is_same_v<From, bool>) {
        const auto* from = static_cast<const Stored*>(x);
        auto* to = static_cast<To*>(y);
        for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(static_cast<float>(from[i] != 0 ? 1 : 0));
    } else {
        convert_row(static_cast<const From*>(x), static_cast<To*>(y), n);
    }
}

template <class From>
Convert converter_from(DType to) {
    switch (to) {
        case DType::f32:
            return convert_bytes<From, float>;
        case DType::f16:
            return convert_bytes<From, Half>;
        case DType::bf16:
            return convert_bytes<From, BFloat16>;
        case DType::i64:
            return convert_bytes<From, int64_t>;
        case DType::i32:
            return convert_bytes<From, int32_t>;
        case DType::u8:
            return convert_bytes<From, uint8_t>;
        case DType::i8:
            return convert_bytes<From, int8_t>;
        case DType::boolean:
            return convert_bytes<From, bool>;
        default:
            return nullptr;
    }
}

Convert converter(DType from, DType to) {
    switch (from) {
        case DType::f32:
            return converter_from<float>(to);
        case DType::f16:
            return converter_from<Half>(to);
        case DType::bf16:
            return converter_from<BFloat16>(to);
        case DType::i64:
            return converter_from<int64_t>(to);
        case DType::i32:
            return converter_from<int32_t>(to);
        case DType::u8:
            return converter_from<uint8_t>(to);
        case DType::i8:
            return converter_from<int8_t>(to);
        case DType::boolean:
            return converter_from<bool>(to);
        default:
            return nullptr;
    }
}

bool build(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    const DType from = builder.dtype(x);
    const DType to = builder.dtype(y);
    if (from == to) {
        builder.alias(y, builder.any(x));
        return true;
    }
    const Convert convert = converter(from, to);
    if (convert == nullptr) return false;
    // Elements are converted where they lie: any order without gaps or padding will do.
    Array source = builder.any(x);
    const bool in_place = !source.desc.is_zero() && dnnl_type(to) != dnnl::memory::data_type::undef &&
                          source.desc.get_inner_nblks() == 0 && is_packed(source.desc);
    if (!in_place) source = builder.dense(x);
    const Array result =
        in_place ? builder.result(y, {source.desc.get_dims(), dnnl_type(to), source.desc.get_strides()})
                 : builder.dense_result(y);
    const int64_t size = element_count(source.shape);
    const size_t width_from = byte_count(from, 1);
    const size_t width_to = byte_count(to, 1);
    builder.add_native("native", {source}, {result}, [=](Execution& execution) {
        const char* in = execution.address(source);
        char* out = execution.address(result);
        for_pieces(size, [&](int64_t start, int64_t count) {
            convert(in + static_cast<size_t>(start) * width_from, out + static_cast<size_t>(start) * width_to,
                    count);
        });
    });
    return true;
}

KILTER_KERNEL("Cast", build);
KILTER_KERNEL("CastLike", build);

}  // namespace
}  // namespace kilter::engine
