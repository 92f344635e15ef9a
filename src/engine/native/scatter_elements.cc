// ScatterElements without reduction: a copy of the data (or the data itself, when nothing reads it later) with elements replaced.
#include <cstring>

#include "base/fail.h"
#include "engine/native/elementwise.h"
#include "engine/native/indices.h"
#include "ops/broadcast.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

struct ScatterPlan {
    Shape sizes;    // of the updates
    Shape strides;  // of the data, 0 along the axis
    int64_t extent = 1, stride = 1;
};

// False when an index is out of range. In order: of updates to one place the last one stays.
template <class T>
bool scatter(const ScatterPlan& plan, const Indices& indices, const char* updates, char* result) {
    const T* from = reinterpret_cast<const T*>(updates);
    T* to = reinterpret_cast<T*>(result);
    const int64_t length = plan.sizes.back();
    const int64_t rows = element_count(plan.sizes) / length;
    for (int64_t row = 0; row < rows; ++row) {
        int64_t offset = 0;
        int64_t rest = row;
        for (size_t axis = plan.sizes.size() - 1; axis-- > 0;) {
            offset += rest % plan.sizes[axis] * plan.strides[axis];
            rest /= plan.sizes[axis];
        }
        for (int64_t i = 0; i < length; ++i) {
            const int64_t index = indices.get(row * length + i, plan.extent);
            if (index < 0) return false;
            to[offset + i * plan.strides.back() + index * plan.stride] = from[row * length + i];
        }
    }
    return true;
}

bool build(Builder& builder, const Node& node) {
    const Value* data = node.input(0);
    const DType index_type = builder.dtype(node.input(1));
    const int width = bits(builder.dtype(data));
    if (!is_index_type(index_type) || (width != 8 && width != 16 && width != 32 && width != 64)) return false;
    if (node.attributes.get_string("reduction", "none") != "none") return false;
    if (builder.dtype(node.input(2)) != builder.dtype(data)) return false;
    const Shape& shape = builder.shape(data);
    const auto axis = static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis"), static_cast<int64_t>(shape.size())));
    ScatterPlan plan;
    plan.sizes = builder.shape(node.input(1));
    if (!fits(plan.sizes, shape, axis) || builder.shape(node.input(2)) != plan.sizes) return false;
    plan.strides = row_major_strides(shape);
    plan.extent = shape[axis];
    plan.stride = plan.strides[axis];
    plan.strides[axis] = 0;
    const Array source = builder.dense(data);
    const Array index = builder.dense(node.input(1));
    const Array updates = builder.dense(node.input(2));
    const bool apart = updates.buffer != source.buffer && index.buffer != source.buffer;
    const Array result =
        apart ? elementwise_result(builder, node.output(0), {source}) : builder.dense_result(node.output(0));
    const std::string where = describe(node);
    const size_t bytes = byte_count(source.dtype, element_count(source.shape));
    builder.add_native("native", {source, index, updates}, {result}, [=](Execution& execution) {
        char* to = execution.address(result);
        if (to != execution.address(source)) std::memcpy(to, execution.address(source), bytes);
        const auto run = width == 8    ? scatter<uint8_t>
                         : width == 16 ? scatter<uint16_t>
                         : width == 32 ? scatter<uint32_t>
                                       : scatter<uint64_t>;
        require(run(plan, Indices(index_type, execution.address(index)), execution.address(updates), to),
                "{}: an index is outside the axis of size {}", where, plan.extent);
    });
    return true;
}

KILTER_KERNEL("ScatterElements", build);

}  // namespace
}  // namespace kilter::engine
