#include "engine/native/elementwise.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "engine/native/loop.h"
#include "engine/native/simd.h"

namespace kilter::engine {
namespace {

enum class Op { add, sub, mul, div, mod, fmod, max, min, prelu, pow };

Op parse(std::string_view name) {
    if (name == "add") return Op::add;
    if (name == "sub") return Op::sub;
    if (name == "mul") return Op::mul;
    if (name == "div") return Op::div;
    if (name == "mod") return Op::mod;
    if (name == "fmod") return Op::fmod;
    if (name == "max") return Op::max;
    if (name == "min") return Op::min;
    if (name == "prelu") return Op::prelu;
    if (name == "pow") return Op::pow;
    fail("internal error: no binary kernel '{}'", name);
}

KILTER_INLINE float power(float base, float exponent) {
    if (exponent == 2.0F) return base * base;
    if (exponent == 3.0F) return base * base * base;
    return std::pow(base, exponent);
}

template <Op op>
KILTER_INLINE float apply(float a, float b) {
    if constexpr (op == Op::add) return a + b;
    if constexpr (op == Op::sub) return a - b;
    if constexpr (op == Op::mul) return a * b;
    if constexpr (op == Op::div) return a / b;
    // NaN on either side wins.
    if constexpr (op == Op::max) {
        const float larger = a > b ? a : b;
        return a != a ? a : larger;
    }
    if constexpr (op == Op::min) {
        const float smaller = a < b ? a : b;
        return a != a ? a : smaller;
    }
    if constexpr (op == Op::prelu) {
        const float product = a * b;
        return a < 0.0F ? product : a;
    }
    if constexpr (op == Op::pow) return power(a, b);
    const float rest = std::fmod(a, b);
    if constexpr (op == Op::fmod) return rest;
    return rest != 0.0F && (rest < 0.0F) != (b < 0.0F) ? rest + b : rest;
}

// Integers wrap; division by zero gives zero, as the reference kernels define it.
template <Op op, class T>
requires std::is_integral_v<T> KILTER_INLINE T apply(T a, T b) {
    using Unsigned = std::make_unsigned_t<T>;
    const auto left = static_cast<Unsigned>(a);
    const auto right = static_cast<Unsigned>(b);
    if constexpr (op == Op::add) return static_cast<T>(left + right);
    if constexpr (op == Op::sub) return static_cast<T>(left - right);
    if constexpr (op == Op::mul) return static_cast<T>(left * right);
    if constexpr (op == Op::max) return a > b ? a : b;
    if constexpr (op == Op::min) return a < b ? a : b;
    if constexpr (op == Op::prelu) return a < 0 ? static_cast<T>(left * right) : a;
    if constexpr (op == Op::div) return b == 0 ? T{0} : b == -1 ? static_cast<T>(Unsigned{0} - left) : a / b;
    const T rest = b == 0 || b == -1 ? T{0} : a % b;
    if constexpr (op == Op::fmod) return rest;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// One row: each side either steps by one or stays.
template <Op op, class T>
KILTER_INLINE void row(const T* a, int64_t step_a, const T* b, int64_t step_b, T* y, int64_t count) {
    if (step_a == 1 && step_b == 1) {
        for (int64_t i = 0; i < count; ++i) y[i] = apply<op>(a[i], b[i]);
    } else if (step_a == 1) {
        const T value = *b;
        for (int64_t i = 0; i < count; ++i) y[i] = apply<op>(a[i], value);
    } else if (step_b == 1) {
        const T value = *a;
        for (int64_t i = 0; i < count; ++i) y[i] = apply<op>(value, b[i]);
    } else {
        const T value = apply<op>(*a, *b);
        for (int64_t i = 0; i < count; ++i) y[i] = value;
    }
}

// A power of one exponent, which is nearly always a square or a root.
KILTER_INLINE void power_row(const float* a, float exponent, float* y, int64_t count) {
    if (exponent == 2.0F) {
        for (int64_t i = 0; i < count; ++i) y[i] = a[i] * a[i];
    } else if (exponent == 3.0F) {
        for (int64_t i = 0; i < count; ++i) y[i] = a[i] * a[i] * a[i];
    } else if (exponent == 0.5F) {
        for (int64_t i = 0; i < count; ++i) y[i] = std::sqrt(a[i]);
    } else if (exponent == -1.0F) {
        for (int64_t i = 0; i < count; ++i) y[i] = 1.0F / a[i];
    } else {
        for (int64_t i = 0; i < count; ++i) y[i] = std::pow(a[i], exponent);
    }
}

// The operator is a constant inside each case so that the loops vectorize.
template <class T>
KILTER_INLINE void any_row(Op op, const T* a, int64_t sa, const T* b, int64_t sb, T* y, int64_t count) {
    switch (op) {
        case Op::add:
            return row<Op::add>(a, sa, b, sb, y, count);
        case Op::sub:
            return row<Op::sub>(a, sa, b, sb, y, count);
        case Op::mul:
            return row<Op::mul>(a, sa, b, sb, y, count);
        case Op::div:
            return row<Op::div>(a, sa, b, sb, y, count);
        case Op::mod:
            return row<Op::mod>(a, sa, b, sb, y, count);
        case Op::fmod:
            return row<Op::fmod>(a, sa, b, sb, y, count);
        case Op::max:
            return row<Op::max>(a, sa, b, sb, y, count);
        case Op::min:
            return row<Op::min>(a, sa, b, sb, y, count);
        case Op::prelu:
            return row<Op::prelu>(a, sa, b, sb, y, count);
        case Op::pow:
            if constexpr (std::is_floating_point_v<T>) {
                if (sa == 1 && sb == 0)
                    power_row(a, *b, y, count);
                else
                    row<Op::pow>(a, sa, b, sb, y, count);
            }
            return;
    }
}

KILTER_INLINE void float_row_body(Op op, const float* a, int64_t sa, const float* b, int64_t sb, float* y,
                                  int64_t n) {
    any_row(op, a, sa, b, sb, y, n);
}
KILTER_SIMD(float_row, (Op op, const float* a, int64_t sa, const float* b, int64_t sb, float* y, int64_t n),
            op, a, sa, b, sb, y, n)

template <class T>
void run(Op op, const Loop& loop, const char* a, const char* b, char* y) {
    const T* left = reinterpret_cast<const T*>(a);
    const T* right = reinterpret_cast<const T*>(b);
    T* result = reinterpret_cast<T*>(y);
    const int64_t step_a = loop.strides[0].back();
    const int64_t step_b = loop.strides[1].back();
    for_rows(loop, [&](const RowCursor::Offsets& offsets, int64_t at, int64_t length) {
        if constexpr (std::is_same_v<T, float>)
            float_row(op, left + offsets[0], step_a, right + offsets[1], step_b, result + at, length);
        else
            any_row(op, left + offsets[0], step_a, right + offsets[1], step_b, result + at, length);
    });
}

}  // namespace

bool has_native_binary(std::string_view op, DType dtype) {
    return dtype == DType::f32 || ((dtype == DType::i32 || dtype == DType::i64) && op != "pow");
}

void add_native_binary(Builder& builder, std::string_view op, const Array& a, const Array& b,
                       const Array& y) {
    const Op code = parse(op);
    const Loop loop = broadcast_loop({a.shape, b.shape}, y.shape);
    const DType dtype = y.dtype;
    builder.add_native("native", {a, b}, {y}, [=](Execution& execution) {
        const char* left = execution.address(a);
        const char* right = execution.address(b);
        char* result = execution.address(y);
        if (dtype == DType::f32)
            run<float>(code, loop, left, right, result);
        else if (dtype == DType::i32)
            run<int32_t>(code, loop, left, right, result);
        else
            run<int64_t>(code, loop, left, right, result);
    });
}

Array elementwise_result(Builder& builder, const Value* y, const std::vector<Array>& operands) {
    const Shape& shape = builder.shape(y);
    const DType dtype = builder.dtype(y);
    for (const Array& chosen : operands) {
        if (!chosen.dense || chosen.dtype != dtype || chosen.shape != shape || !builder.dies_here(chosen))
            continue;
        // An operand elsewhere in the same memory would be overwritten before it is read.
        const bool safe = std::ranges::all_of(operands, [&](const Array& other) {
            return other.buffer != chosen.buffer ||
                   (other.offset == chosen.offset && other.shape == chosen.shape &&
                    other.dtype == chosen.dtype);
        });
        if (!safe) continue;
        builder.alias(y, chosen);
        return chosen;
    }
    return builder.dense_result(y);
}

}  // namespace kilter::engine
