// Comparisons and logic: broadcast operands, boolean results.
#include "engine/builder.h"
#include "engine/native/elementwise.h"
#include "engine/native/loop.h"
#include "engine/native/simd.h"

namespace kilter::engine {
namespace {

enum class Test { equal, less, less_or_equal, both, either, one };

// `Greater` is `Less` with its operands exchanged.
template <Test test, class T>
KILTER_INLINE uint8_t decide(T a, T b) {
    if constexpr (test == Test::equal) return a == b;
    if constexpr (test == Test::less) return a < b;
    if constexpr (test == Test::less_or_equal) return a <= b;
    if constexpr (test == Test::both) return a != T{0} && b != T{0};
    if constexpr (test == Test::either) return a != T{0} || b != T{0};
    if constexpr (test == Test::one) return (a != T{0}) != (b != T{0});
}

template <Test test, class T>
KILTER_INLINE void row(const T* a, int64_t step_a, const T* b, int64_t step_b, uint8_t* y, int64_t count) {
    if (step_a == 1 && step_b == 1) {
        for (int64_t i = 0; i < count; ++i) y[i] = decide<test>(a[i], b[i]);
    } else if (step_a == 1) {
        const T value = *b;
        for (int64_t i = 0; i < count; ++i) y[i] = decide<test>(a[i], value);
    } else if (step_b == 1) {
        const T value = *a;
        for (int64_t i = 0; i < count; ++i) y[i] = decide<test>(value, b[i]);
    } else {
        const uint8_t value = decide<test>(*a, *b);
        for (int64_t i = 0; i < count; ++i) y[i] = value;
    }
}

template <class T>
KILTER_INLINE void any_row(Test test, const T* a, int64_t sa, const T* b, int64_t sb, uint8_t* y, int64_t n) {
    switch (test) {
        case Test::equal:
            return row<Test::equal>(a, sa, b, sb, y, n);
        case Test::less:
            return row<Test::less>(a, sa, b, sb, y, n);
        case Test::less_or_equal:
            return row<Test::less_or_equal>(a, sa, b, sb, y, n);
        case Test::both:
            return row<Test::both>(a, sa, b, sb, y, n);
        case Test::either:
            return row<Test::either>(a, sa, b, sb, y, n);
        case Test::one:
            return row<Test::one>(a, sa, b, sb, y, n);
    }
}

KILTER_INLINE void float_row_body(Test test, const float* a, int64_t sa, const float* b, int64_t sb,
                                  uint8_t* y, int64_t n) {
    any_row(test, a, sa, b, sb, y, n);
}
KILTER_SIMD(float_row,
            (Test test, const float* a, int64_t sa, const float* b, int64_t sb, uint8_t* y, int64_t n), test,
            a, sa, b, sb, y, n)

template <class T>
void run(Test test, const Loop& loop, const char* a, const char* b, char* y) {
    const T* left = reinterpret_cast<const T*>(a);
    const T* right = reinterpret_cast<const T*>(b);
    auto* result = reinterpret_cast<uint8_t*>(y);
    const int64_t step_a = loop.strides[0].back();
    const int64_t step_b = loop.strides[1].back();
    for_rows(loop, [&](const RowCursor::Offsets& offsets, int64_t at, int64_t length) {
        if constexpr (std::is_same_v<T, float>)
            float_row(test, left + offsets[0], step_a, right + offsets[1], step_b, result + at, length);
        else
            any_row(test, left + offsets[0], step_a, right + offsets[1], step_b, result + at, length);
    });
}

bool add_test(Builder& builder, const Node& node, Test test, bool exchange) {
    const Value* a = node.input(exchange ? 1 : 0);
    const Value* b = node.input(exchange ? 0 : 1);
    const DType dtype = builder.dtype(a);
    if (dtype != builder.dtype(b)) return false;
    // Booleans are equal when both or neither are set, whatever their bytes.
    const bool truth = dtype == DType::boolean;
    if (truth && (test == Test::less || test == Test::less_or_equal)) return false;
    if (!truth && dtype != DType::f32 && dtype != DType::i64 && dtype != DType::i32 && dtype != DType::u8)
        return false;
    const bool negate = truth && test == Test::equal;
    const Array left = builder.dense(a);
    const Array right = builder.dense(b);
    const Array result = elementwise_result(builder, node.output(0), {left, right});
    const Loop loop = broadcast_loop({left.shape, right.shape}, result.shape);
    const int64_t size = element_count(result.shape);
    builder.add_native("native", {left, right}, {result}, [=](Execution& execution) {
        const char* from = execution.address(left);
        const char* other = execution.address(right);
        char* out = execution.address(result);
        if (dtype == DType::f32)
            run<float>(test, loop, from, other, out);
        else if (dtype == DType::i64)
            run<int64_t>(test, loop, from, other, out);
        else if (dtype == DType::i32)
            run<int32_t>(test, loop, from, other, out);
        else
            run<uint8_t>(negate ? Test::one : test, loop, from, other, out);
        if (negate)
            for (int64_t i = 0; i < size; ++i) out[i] = out[i] == 0 ? 1 : 0;
    });
    return true;
}

bool build_equal(Builder& builder, const Node& node) { return add_test(builder, node, Test::equal, false); }
bool build_less(Builder& builder, const Node& node) { return add_test(builder, node, Test::less, false); }
bool build_greater(Builder& builder, const Node& node) { return add_test(builder, node, Test::less, true); }
bool build_less_or_equal(Builder& builder, const Node& node) {
    return add_test(builder, node, Test::less_or_equal, false);
}
bool build_greater_or_equal(Builder& builder, const Node& node) {
    return add_test(builder, node, Test::less_or_equal, true);
}
bool build_and(Builder& builder, const Node& node) { return add_test(builder, node, Test::both, false); }
bool build_or(Builder& builder, const Node& node) { return add_test(builder, node, Test::either, false); }
bool build_xor(Builder& builder, const Node& node) { return add_test(builder, node, Test::one, false); }

KILTER_KERNEL("Equal", build_equal);
KILTER_KERNEL("Less", build_less);
KILTER_KERNEL("Greater", build_greater);
KILTER_KERNEL("LessOrEqual", build_less_or_equal);
KILTER_KERNEL("GreaterOrEqual", build_greater_or_equal);
KILTER_KERNEL("And", build_and);
KILTER_KERNEL("Or", build_or);
KILTER_KERNEL("Xor", build_xor);

}  // namespace
}  // namespace kilter::engine
