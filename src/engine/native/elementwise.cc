#include "engine/native/elementwise.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "engine/native/simd.h"
#include "ops/broadcast.h"

namespace kilter::engine {
namespace {

// Below this many elements starting a second thread costs more than it saves.
constexpr int64_t kParallelElements = 1 << 14;

enum class Op { add, sub, mul, div, max, min, pow };

Op parse(std::string_view name) {
    if (name == "add") return Op::add;
    if (name == "sub") return Op::sub;
    if (name == "mul") return Op::mul;
    if (name == "div") return Op::div;
    if (name == "max") return Op::max;
    if (name == "min") return Op::min;
    if (name == "pow") return Op::pow;
    fail("internal error: no binary kernel '{}'", name);
}

template <class T>
KILTER_INLINE T apply(Op op, T a, T b) {
    switch (op) {
        case Op::add:
            return a + b;
        case Op::sub:
            return a - b;
        case Op::mul:
            return a * b;
        case Op::div:
            return b == T(0) && std::is_integral_v<T> ? T(0) : static_cast<T>(a / b);
        case Op::max:
            return a < b || a != a ? (a != a ? a : b) : (b != b ? b : a);
        default:
            return b < a || a != a ? (a != a ? a : b) : (b != b ? b : a);
    }
}

// One row: each side either steps by one or stays. The operator is a constant inside each case so that loops vectorize.
template <class T, Op op>
KILTER_INLINE void row(const T* a, int64_t step_a, const T* b, int64_t step_b, T* y, int64_t count) {
    if (step_a == 1 && step_b == 1) {
        for (int64_t i = 0; i < count; ++i) y[i] = apply<T>(op, a[i], b[i]);
    } else if (step_a == 1) {
        const T value = *b;
        for (int64_t i = 0; i < count; ++i) y[i] = apply<T>(op, a[i], value);
    } else if (step_b == 1) {
        const T value = *a;
        for (int64_t i = 0; i < count; ++i) y[i] = apply<T>(op, value, b[i]);
    } else {
        const T value = apply<T>(op, *a, *b);
        for (int64_t i = 0; i < count; ++i) y[i] = value;
    }
}

template <class T>
KILTER_INLINE void any_row_body(Op op, const T* a, int64_t step_a, const T* b, int64_t step_b, T* y,
                                int64_t count) {
    switch (op) {
        case Op::add:
            return row<T, Op::add>(a, step_a, b, step_b, y, count);
        case Op::sub:
            return row<T, Op::sub>(a, step_a, b, step_b, y, count);
        case Op::mul:
            return row<T, Op::mul>(a, step_a, b, step_b, y, count);
        case Op::div:
            return row<T, Op::div>(a, step_a, b, step_b, y, count);
        case Op::max:
            return row<T, Op::max>(a, step_a, b, step_b, y, count);
        case Op::min:
            return row<T, Op::min>(a, step_a, b, step_b, y, count);
        case Op::pow:
            if constexpr (std::is_floating_point_v<T>) {
                for (int64_t i = 0; i < count; ++i) {
                    const T exponent = b[i * step_b];
                    const T base = a[i * step_a];
                    y[i] = exponent == T(2) ? base * base : std::pow(base, exponent);
                }
            }
            return;
    }
}

KILTER_INLINE void float_row_body(Op op, const float* a, int64_t sa, const float* b, int64_t sb, float* y,
                                  int64_t n) {
    any_row_body<float>(op, a, sa, b, sb, y, n);
}
KILTER_SIMD(float_row, (Op op, const float* a, int64_t sa, const float* b, int64_t sb, float* y, int64_t n),
            op, a, sa, b, sb, y, n)

template <class T>
void dispatch_row(Op op, const T* a, int64_t sa, const T* b, int64_t sb, T* y, int64_t n) {
    if constexpr (std::is_same_v<T, float>)
        float_row(op, a, sa, b, sb, y, n);
    else
        any_row_body<T>(op, a, sa, b, sb, y, n);
}

// Shapes reduced to the fewest axes along which both sides have constant strides; the last axis is the row.
struct Loop {
    Shape sizes, strides_a, strides_b;
};

Loop collapse(const Shape& a, const Shape& b, const Shape& y) {
    const auto strides = [&](const Shape& shape) {
        const Shape own = row_major_strides(shape);
        Shape result(y.size(), 0);
        for (size_t i = 0; i < shape.size(); ++i)
            if (shape[i] != 1) result[i + y.size() - shape.size()] = own[i];
        return result;
    };
    const Shape full_a = strides(a);
    const Shape full_b = strides(b);
    Loop loop;
    for (size_t axis = 0; axis < y.size(); ++axis) {
        if (y[axis] == 1) continue;
        if (!loop.sizes.empty()) {
            const int64_t size = y[axis];
            const bool joins_a = loop.strides_a.back() == full_a[axis] * size;
            const bool joins_b = loop.strides_b.back() == full_b[axis] * size;
            if (joins_a && joins_b) {
                loop.sizes.back() *= size;
                loop.strides_a.back() = full_a[axis];
                loop.strides_b.back() = full_b[axis];
                continue;
            }
        }
        loop.sizes.push_back(y[axis]);
        loop.strides_a.push_back(full_a[axis]);
        loop.strides_b.push_back(full_b[axis]);
    }
    if (loop.sizes.empty()) loop = {{1}, {0}, {0}};
    return loop;
}

template <class T>
void run(Op op, const Loop& loop, const T* a, const T* b, T* y) {
    const size_t outer = loop.sizes.size() - 1;
    const int64_t count = loop.sizes[outer];
    int64_t rows = 1;
    for (size_t i = 0; i < outer; ++i) rows *= loop.sizes[i];
    const int64_t total = rows * count;
    const int threads = total < kParallelElements ? 1 : omp_get_max_threads();
    // Few long rows are cut into pieces so that every thread has work.
    const int64_t pieces = rows >= threads ? 1 : threads;
    const int64_t piece = (count + pieces - 1) / pieces;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t job = 0; job < rows * pieces; ++job) {
        const int64_t index = job / pieces;
        const int64_t start = job % pieces * piece;
        const int64_t length = std::min(piece, count - start);
        if (length <= 0) continue;
        int64_t offset_a = start * loop.strides_a[outer];
        int64_t offset_b = start * loop.strides_b[outer];
        int64_t rest = index;
        for (size_t axis = outer; axis-- > 0;) {
            const int64_t position = rest % loop.sizes[axis];
            rest /= loop.sizes[axis];
            offset_a += position * loop.strides_a[axis];
            offset_b += position * loop.strides_b[axis];
        }
        dispatch_row<T>(op, a + offset_a, loop.strides_a[outer], b + offset_b, loop.strides_b[outer],
                        y + index * count + start, length);
    }
}

}  // namespace

void add_native_binary(Builder& builder, std::string_view op, const Array& a, const Array& b,
                       const Array& y) {
    const Op code = parse(op);
    const Loop loop = collapse(a.shape, b.shape, y.shape);
    // Rows whose inner stride is neither 0 nor 1 cannot occur: the last axis of a row-major array has stride 1.
    const DType dtype = y.dtype;
    builder.add_native("native", {a, b}, {y}, [=](Execution& execution) {
        const void* left = execution.address(a);
        const void* right = execution.address(b);
        void* result = execution.address(y);
        switch (dtype) {
            case DType::f32:
                return run(code, loop, static_cast<const float*>(left), static_cast<const float*>(right),
                           static_cast<float*>(result));
            case DType::i32:
                return run(code, loop, static_cast<const int32_t*>(left), static_cast<const int32_t*>(right),
                           static_cast<int32_t*>(result));
            default:
                return run(code, loop, static_cast<const int64_t*>(left), static_cast<const int64_t*>(right),
                           static_cast<int64_t*>(result));
        }
    });
}

}  // namespace kilter::engine
