// OneHot and Trilu: results that are mostly one value.
#include <algorithm>
#include <cstring>

#include "engine/builder.h"
#include "engine/native/indices.h"
#include "engine/native/loop.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

template <class T>
void one_hot(const Indices& indices, int64_t outer, int64_t depth, int64_t inner, const char* values,
             char* result) {
    const T off = reinterpret_cast<const T*>(values)[0];
    const T on = reinterpret_cast<const T*>(values)[1];
    T* to = reinterpret_cast<T*>(result);
    for_pieces(outer * depth * inner,
               [&](int64_t start, int64_t count) { std::fill_n(to + start, count, off); });
    for (int64_t i = 0; i < outer * inner; ++i) {
        const int64_t hot = indices.get(i, depth);
        if (hot >= 0) to[(i / inner * depth + hot) * inner + i % inner] = on;
    }
}

bool build_one_hot(Builder& builder, const Node& node) {
    const DType index_type = builder.dtype(node.input(0));
    const int width = bits(builder.dtype(node.output(0)));
    if (!is_index_type(index_type) || (width != 8 && width != 16 && width != 32 && width != 64)) return false;
    if (element_count(builder.shape(node.input(2))) != 2) return false;
    const Shape& shape = builder.shape(node.output(0));
    const auto axis = static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis", -1), static_cast<int64_t>(shape.size())));
    const int64_t outer = element_count(std::span(shape).first(axis));
    const int64_t depth = shape[axis];
    const int64_t inner = element_count(std::span(shape).subspan(axis + 1));
    const Array index = builder.dense(node.input(0));
    const Array values = builder.dense(node.input(2));
    const Array result = builder.dense_result(node.output(0));
    builder.add_native("native", {index, values}, {result}, [=](Execution& execution) {
        const auto run = width == 8    ? one_hot<uint8_t>
                         : width == 16 ? one_hot<uint16_t>
                         : width == 32 ? one_hot<uint32_t>
                                       : one_hot<uint64_t>;
        run(Indices(index_type, execution.address(index)), outer, depth, inner, execution.address(values),
            execution.address(result));
    });
    return true;
}

bool build_trilu(Builder& builder, const Node& node) {
    const Value* value = node.input(0);
    const Tensor* offset = builder.constant(node.input(1));
    if (bits(builder.dtype(value)) < 8 ||
        (node.input(1) != nullptr && (offset == nullptr || offset->size() != 1)))
        return false;
    const Shape& shape = builder.shape(value);
    const int64_t rows = shape[shape.size() - 2];
    const int64_t columns = shape.back();
    const int64_t k = offset != nullptr ? std::clamp(offset->to_ints()[0], -rows, columns) : 0;
    const bool upper = node.attributes.get_int("upper", 1) != 0;
    const int64_t lines = element_count(shape) / columns;
    const size_t width = byte_count(builder.dtype(value), 1);
    const Array x = builder.dense(value);
    const Array y = builder.dense_result(node.output(0));
    builder.add_native("native", {x}, {y}, [=](Execution& execution) {
        const char* from = execution.address(x);
        char* to = execution.address(y);
        const size_t line_bytes = static_cast<size_t>(columns) * width;
        const int threads = threads_for(lines * columns);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int64_t line = 0; line < lines; ++line) {
            // The kept part of a line is one run.
            const int64_t diagonal = line % rows + k;
            const auto begin =
                static_cast<size_t>(upper ? std::clamp<int64_t>(diagonal, 0, columns) : 0) * width;
            const auto end =
                static_cast<size_t>(upper ? columns : std::clamp<int64_t>(diagonal + 1, 0, columns)) * width;
            const size_t start = static_cast<size_t>(line) * line_bytes;
            std::memset(to + start, 0, begin);
            std::memcpy(to + start + begin, from + start + begin, end - begin);
            std::memset(to + start + end, 0, line_bytes - end);
        }
    });
    return true;
}

KILTER_KERNEL("OneHot", build_one_hot);
KILTER_KERNEL("Trilu", build_trilu);

}  // namespace
}  // namespace kilter::engine
