// CumSum along an axis. Floats are summed in double, as the reference does.
#include <algorithm>
#include <array>

#include "engine/builder.h"
#include "engine/native/loop.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

constexpr int64_t kColumns = 64;

template <class T, class Total>
void accumulate(const T* x, T* y, int64_t outer, int64_t extent, int64_t inner, bool exclusive,
                bool reverse) {
    const int64_t pieces = (inner + kColumns - 1) / kColumns;
    const int threads = threads_for(outer * extent * inner);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t job = 0; job < outer * pieces; ++job) {
        const int64_t start = job % pieces * kColumns;
        const int64_t columns = std::min(kColumns, inner - start);
        const int64_t base = job / pieces * extent * inner + start;
        std::array<Total, kColumns> totals{};
        for (int64_t k = 0; k < extent; ++k) {
            const int64_t at = base + (reverse ? extent - 1 - k : k) * inner;
            for (int64_t i = 0; i < columns; ++i) {
                Total& total = totals[static_cast<size_t>(i)];
                const Total before = total;
                total += static_cast<Total>(x[at + i]);
                y[at + i] = static_cast<T>(exclusive ? before : total);
            }
        }
    }
}

bool build(Builder& builder, const Node& node) {
    const Value* value = node.input(0);
    const DType dtype = builder.dtype(value);
    const Shape& shape = builder.shape(value);
    const Tensor* where = builder.constant(node.input(1));
    if ((dtype != DType::f32 && dtype != DType::i64 && dtype != DType::i32) || shape.empty()) return false;
    if (where == nullptr || where->size() != 1) return false;
    const auto axis =
        static_cast<size_t>(normalize_axis(where->to_ints()[0], static_cast<int64_t>(shape.size())));
    const int64_t outer = element_count(std::span(shape).first(axis));
    const int64_t extent = shape[axis];
    const int64_t inner = element_count(std::span(shape).subspan(axis + 1));
    const bool exclusive = node.attributes.get_int("exclusive") != 0;
    const bool reverse = node.attributes.get_int("reverse") != 0;
    const Array x = builder.dense(value);
    const Array y = builder.dense_result(node.output(0));
    builder.add_native("native", {x}, {y}, [=](Execution& execution) {
        const char* from = execution.address(x);
        char* to = execution.address(y);
        // Unsigned arithmetic wraps, and gives the right bits for signed integers too.
        if (dtype == DType::f32)
            accumulate<float, double>(reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to),
                                      outer, extent, inner, exclusive, reverse);
        else if (dtype == DType::i64)
            accumulate<int64_t, uint64_t>(reinterpret_cast<const int64_t*>(from),
                                          reinterpret_cast<int64_t*>(to), outer, extent, inner, exclusive,
                                          reverse);
        else
            accumulate<int32_t, uint32_t>(reinterpret_cast<const int32_t*>(from),
                                          reinterpret_cast<int32_t*>(to), outer, extent, inner, exclusive,
                                          reverse);
    });
    return true;
}

KILTER_KERNEL("CumSum", build);

}  // namespace
}  // namespace kilter::engine
