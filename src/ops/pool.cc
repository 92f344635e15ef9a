#include "ops/pool.h"

#include "base/fail.h"

namespace kilter {

Dims pool_dims(const Attributes& attributes, const Dims& x) {
    require(x.size() >= 3 && x.size() <= 5, "the input must have 1 to 3 spatial axes, found shape {}",
            to_string(x));
    const Window window = read_window(attributes, pool_kernel(attributes, x.size() - 2));
    require_pads_inside_kernel(window);
    Dims result{x[0], x[1]};
    for (Dim& dim : window.output(Dims(x.begin() + 2, x.end()))) result.push_back(std::move(dim));
    return result;
}

void infer_pool(InferContext& context) {
    if (!context.shape(0)) return context.set_output(0, context.dtype(0));
    context.set_output(0, context.dtype(0), pool_dims(context.attributes(), *context.shape(0)));
}

Pool read_pool(const Attributes& attributes, const Shape& x) {
    Pool pool;
    pool.result = ValueType(DType::f64, pool_dims(attributes, to_dims(x))).static_shape();
    const Shape spatial(x.begin() + 2, x.end());
    Window window = read_window(attributes, pool_kernel(attributes, spatial.size()));
    window.resolve_pads(spatial);
    pool.input = triple(spatial, 1);
    pool.output = triple(std::span(pool.result).subspan(2), 1);
    pool.kernel = triple(window.kernel, 1);
    pool.stride = triple(window.strides, 1);
    pool.dilation = triple(window.dilations, 1);
    pool.pad = triple(window.pads_begin, 0);
    pool.pad_end = triple(window.pads_end, 0);
    // Without elements there is nothing to walk, and the extents may be too large to multiply.
    pool.planes = element_count(pool.result) == 0 ? 0 : x[0] * x[1];
    return pool;
}

}  // namespace kilter
