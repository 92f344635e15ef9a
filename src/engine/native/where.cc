// Where: elements of one array or another, by a condition; all three broadcast. Elements are moved as they are.
#include "engine/builder.h"
#include "engine/native/elementwise.h"
#include "engine/native/loop.h"
#include "engine/native/simd.h"

namespace kilter::engine {
namespace {

struct Steps {
    int64_t condition, x, y;
};

template <class T>
KILTER_INLINE void row(const uint8_t* condition, const T* x, const T* y, const Steps& steps, T* out,
                       int64_t n) {
    if (steps.condition == 0) {
        const T* chosen = *condition != 0 ? x : y;
        const int64_t step = *condition != 0 ? steps.x : steps.y;
        for (int64_t i = 0; i < n; ++i) out[i] = chosen[i * step];
    } else if (steps.x == 1 && steps.y == 1) {
        for (int64_t i = 0; i < n; ++i) {
            const T first = x[i];
            const T second = y[i];
            out[i] = condition[i] != 0 ? first : second;
        }
    } else if (steps.x == 1) {
        const T second = *y;
        for (int64_t i = 0; i < n; ++i) {
            const T first = x[i];
            out[i] = condition[i] != 0 ? first : second;
        }
    } else {
        const T first = *x;
        for (int64_t i = 0; i < n; ++i) {
            const T second = y[i * steps.y];
            out[i] = condition[i] != 0 ? first : second;
        }
    }
}

KILTER_INLINE void words_body(const uint8_t* condition, const uint32_t* x, const uint32_t* y,
                              const Steps& steps, uint32_t* out, int64_t n) {
    row(condition, x, y, steps, out, n);
}
KILTER_SIMD(words,
            (const uint8_t* condition, const uint32_t* x, const uint32_t* y, const Steps& steps,
             uint32_t* out, int64_t n),
            condition, x, y, steps, out, n)

template <class T>
void run(const Loop& loop, const char* condition, const char* x, const char* y, char* out) {
    const auto* mask = reinterpret_cast<const uint8_t*>(condition);
    const T* first = reinterpret_cast<const T*>(x);
    const T* second = reinterpret_cast<const T*>(y);
    T* result = reinterpret_cast<T*>(out);
    const Steps steps{loop.strides[0].back(), loop.strides[1].back(), loop.strides[2].back()};
    for_rows(loop, [&](const RowCursor::Offsets& offsets, int64_t at, int64_t length) {
        if constexpr (std::is_same_v<T, uint32_t>)
            words(mask + offsets[0], first + offsets[1], second + offsets[2], steps, result + at, length);
        else
            row(mask + offsets[0], first + offsets[1], second + offsets[2], steps, result + at, length);
    });
}

bool build(Builder& builder, const Node& node) {
    const int width = bits(builder.dtype(node.output(0)));
    if (width != 8 && width != 16 && width != 32 && width != 64) return false;
    const Array condition = builder.dense(node.input(0));
    const Array x = builder.dense(node.input(1));
    const Array y = builder.dense(node.input(2));
    const Array result = elementwise_result(builder, node.output(0), {x, y, condition});
    const Loop loop = broadcast_loop({condition.shape, x.shape, y.shape}, result.shape);
    builder.add_native("native", {condition, x, y}, {result}, [=](Execution& execution) {
        const auto run_as = width == 8    ? run<uint8_t>
                            : width == 16 ? run<uint16_t>
                            : width == 32 ? run<uint32_t>
                                          : run<uint64_t>;
        run_as(loop, execution.address(condition), execution.address(x), execution.address(y),
               execution.address(result));
    });
    return true;
}

KILTER_KERNEL("Where", build);

}  // namespace
}  // namespace kilter::engine
