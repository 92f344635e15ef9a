// ArgMax and ArgMin along one axis. NaN is the extreme in both directions; of equal elements the first (or last) is taken.
#include <algorithm>
#include <array>
#include <limits>

#include "engine/builder.h"
#include "engine/native/loop.h"
#include "engine/native/order.h"
#include "engine/native/simd.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

// Columns that are searched side by side.
constexpr int64_t kColumns = 64;

template <class T>
bool better(T a, T b, bool max) {
    if (a != a || b != b) return a != a && b == b;
    return max ? a > b : a < b;
}

// The largest (smallest) of a run, or NaN where one is.
KILTER_INLINE void extreme_body(const float* x, int64_t n, bool max, float& found) {
    const float sign = max ? 1.0F : -1.0F;
    float best = -std::numeric_limits<float>::infinity();
    int lost = 0;
#pragma omp simd reduction(max : best) reduction(| : lost)
    for (int64_t i = 0; i < n; ++i) {
        const float value = x[i] * sign;
        best = value > best ? value : best;
        lost |= static_cast<int>(value != value);
    }
    found = lost != 0 ? std::numeric_limits<float>::quiet_NaN() : best * sign;
}
KILTER_SIMD(extreme, (const float* x, int64_t n, bool max, float& found), x, n, max, found)

template <class T>
void search_columns(const T* x, int64_t extent, int64_t stride, int64_t columns, bool max, bool last,
                    int64_t* y) {
    std::array<T, kColumns> best;
    std::copy_n(x, columns, best.begin());
    std::fill_n(y, columns, 0);
    for (int64_t k = 1; k < extent; ++k) {
        const T* row = x + k * stride;
        for (int64_t i = 0; i < columns; ++i) {
            T& value = best[static_cast<size_t>(i)];
            if (!better(row[i], value, max) && !(last && row[i] == value)) continue;
            value = row[i];
            y[i] = k;
        }
    }
}

int64_t search_row(const float* x, int64_t extent, bool max, bool last) {
    float value = 0.0F;
    extreme(x, extent, max, value);
    const auto hit = [&](float element) { return value != value ? element != element : element == value; };
    // Of several NaN the first counts, whichever end is asked for.
    if (!last || value != value) return std::find_if(x, x + extent, hit) - x;
    int64_t at = extent - 1;
    while (!hit(x[at])) --at;
    return at;
}

template <class T>
void search(const T* x, int64_t outer, int64_t extent, int64_t inner, bool max, bool last, int64_t* y) {
    const int64_t pieces = (inner + kColumns - 1) / kColumns;
    const int threads = threads_for(outer * extent * inner);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t job = 0; job < outer * pieces; ++job) {
        const int64_t start = job % pieces * kColumns;
        const T* from = x + job / pieces * extent * inner + start;
        int64_t* to = y + job / pieces * inner + start;
        if constexpr (std::is_same_v<T, float>) {
            if (inner == 1) {
                *to = search_row(from, extent, max, last);
                continue;
            }
        }
        search_columns(from, extent, inner, std::min(kColumns, inner - start), max, last, to);
    }
}

bool build(Builder& builder, const Node& node) {
    const Value* value = node.input(0);
    const DType dtype = builder.dtype(value);
    const Shape& shape = builder.shape(value);
    if ((dtype != DType::f32 && dtype != DType::i64 && dtype != DType::i32) || shape.empty()) return false;
    const auto axis = static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis"), static_cast<int64_t>(shape.size())));
    OrderedArray source = in_memory_order(builder, value);
    // The positions found are row-major: what is left of the array must be, too.
    std::vector<size_t> left = source.order.axes;
    std::erase(left, axis);
    if (source.order.block != 0 || !std::ranges::is_sorted(left)) source = in_natural_order(builder, value);
    const size_t place = source.order.place(axis);
    const std::span<const int64_t> sizes(source.sizes);
    const int64_t outer = element_count(sizes.first(place));
    const int64_t extent = shape[axis];
    const int64_t inner = element_count(sizes.subspan(place + 1));
    const bool max = node.op() == "ArgMax";
    const bool last = node.attributes.get_int("select_last_index") != 0;
    const Array x = source.array;
    const Array y = builder.dense_result(node.output(0));
    builder.add_native("native", {x}, {y}, [=](Execution& execution) {
        const char* from = execution.address(x);
        auto* to = reinterpret_cast<int64_t*>(execution.address(y));
        if (dtype == DType::f32)
            search(reinterpret_cast<const float*>(from), outer, extent, inner, max, last, to);
        else if (dtype == DType::i64)
            search(reinterpret_cast<const int64_t*>(from), outer, extent, inner, max, last, to);
        else
            search(reinterpret_cast<const int32_t*>(from), outer, extent, inner, max, last, to);
    });
    return true;
}

KILTER_KERNEL("ArgMax", build);
KILTER_KERNEL("ArgMin", build);

}  // namespace
}  // namespace kilter::engine
