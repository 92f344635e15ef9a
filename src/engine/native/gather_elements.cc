// GatherElements: each result element comes from the same place in the data, but for its index along one axis.
#include <atomic>

#include "base/fail.h"
#include "engine/native/indices.h"
#include "engine/native/loop.h"
#include "ops/broadcast.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

struct GatherPlan {
    Shape sizes;    // of the result
    Shape strides;  // of the data, 0 along the axis
    int64_t extent = 1, stride = 1;
    int64_t rows = 1, length = 1;
};

template <class T>
bool gather(const GatherPlan& plan, const char* data, const Indices& indices, char* result) {
    const T* from = reinterpret_cast<const T*>(data);
    T* to = reinterpret_cast<T*>(result);
    std::atomic<bool> inside{true};
    const int64_t step = plan.strides.back();
    const int threads = threads_for(plan.rows * plan.length);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t row = 0; row < plan.rows; ++row) {
        int64_t offset = 0;
        int64_t rest = row;
        for (size_t axis = plan.sizes.size() - 1; axis-- > 0;) {
            offset += rest % plan.sizes[axis] * plan.strides[axis];
            rest /= plan.sizes[axis];
        }
        for (int64_t i = 0; i < plan.length; ++i) {
            const int64_t at = row * plan.length + i;
            const int64_t index = indices.get(at, plan.extent);
            if (index < 0)
                inside = false;
            else
                to[at] = from[offset + i * step + index * plan.stride];
        }
    }
    return inside;
}

bool build(Builder& builder, const Node& node) {
    const Value* data = node.input(0);
    const Value* ids = node.input(1);
    const DType index_type = builder.dtype(ids);
    const int width = bits(builder.dtype(data));
    if (!is_index_type(index_type) || (width != 8 && width != 16 && width != 32 && width != 64)) return false;
    const Shape& shape = builder.shape(data);
    const auto axis = static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis"), static_cast<int64_t>(shape.size())));
    GatherPlan plan;
    plan.sizes = builder.shape(ids);
    if (!fits(plan.sizes, shape, axis)) return false;
    plan.strides = row_major_strides(shape);
    plan.extent = shape[axis];
    plan.stride = plan.strides[axis];
    plan.strides[axis] = 0;
    plan.length = plan.sizes.back();
    plan.rows = element_count(plan.sizes) / plan.length;
    const Array source = builder.dense(data);
    const Array index = builder.dense(ids);
    const Array result = builder.dense_result(node.output(0));
    const std::string where = describe(node);
    builder.add_native("native", {source, index}, {result}, [=](Execution& execution) {
        const Indices indices(index_type, execution.address(index));
        const auto run = width == 8    ? gather<uint8_t>
                         : width == 16 ? gather<uint16_t>
                         : width == 32 ? gather<uint32_t>
                                       : gather<uint64_t>;
        require(run(plan, execution.address(source), indices, execution.address(result)),
                "{}: an index is outside the axis of size {}", where, plan.extent);
    });
    return true;
}

KILTER_KERNEL("GatherElements", build);

}  // namespace
}  // namespace kilter::engine
