// Gather along an axis: rows are copied as they are.
#include <atomic>
#include <cstring>

#include "base/fail.h"
#include "engine/builder.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

bool build(Builder& builder, const Node& node) {
    const Value* data = node.input(0);
    const Value* indices = node.input(1);
    const Value* y = node.output(0);
    const DType index_type = builder.dtype(indices);
    if ((index_type != DType::i64 && index_type != DType::i32) || bits(builder.dtype(data)) < 8) return false;
    const Shape& shape = builder.shape(data);
    const int64_t axis = normalize_axis(node.attributes.get_int("axis"), static_cast<int64_t>(shape.size()));
    int64_t outer = 1;
    int64_t inner = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (static_cast<int64_t>(i) < axis) outer *= shape[i];
        if (static_cast<int64_t>(i) > axis) inner *= shape[i];
    }
    const int64_t limit = shape[static_cast<size_t>(axis)];
    const int64_t count = element_count(builder.shape(indices));
    const size_t bytes = byte_count(builder.dtype(data), inner);
    const Array source = builder.dense(data);
    const Array index = builder.dense(indices);
    const Array result = builder.dense_result(y);
    const std::string where = describe(node);
    builder.add_native("native", {source, index}, {result}, [=](Execution& execution) {
        const char* from = execution.address(source);
        char* to = execution.address(result);
        const char* ids = execution.address(index);
        std::atomic<int64_t> bad{0};
#pragma omp parallel for schedule(static) if (static_cast <size_t>(outer * count) * bytes > 65536)
        for (int64_t job = 0; job < outer * count; ++job) {
            const int64_t row = job / count;
            const int64_t at = job % count;
            int64_t id = index_type == DType::i64 ? reinterpret_cast<const int64_t*>(ids)[at]
                                                  : reinterpret_cast<const int32_t*>(ids)[at];
            if (id < 0) id += limit;
            if (id < 0 || id >= limit) {
                bad = 1;
                continue;
            }
            std::memcpy(to + static_cast<size_t>(job) * bytes,
                        from + static_cast<size_t>(row * limit + id) * bytes, bytes);
        }
        require(bad == 0, "{}: an index is outside the axis of size {}", where, limit);
    });
    return true;
}

KILTER_KERNEL("Gather", build);

}  // namespace
}  // namespace kilter::engine
