#include "engine/dnnl/weights_view.h"

namespace kilter::engine {

dnnl::memory::desc weights_view(DType dtype, const Shape& shape, int64_t groups, bool transposed) {
    Shape dims(shape);
    Shape strides(shape.size(), 1);
    for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
    const int64_t group_stride = strides[0] * (shape[0] / groups);
    dims[0] = shape[0] / groups;
    if (transposed) {
        std::swap(dims[0], dims[1]);
        std::swap(strides[0], strides[1]);
    }
    if (groups > 1) {
        dims.insert(dims.begin(), groups);
        strides.insert(strides.begin(), group_stride);
    }
    return {dims, dnnl_type(dtype), strides};
}

}  // namespace kilter::engine
