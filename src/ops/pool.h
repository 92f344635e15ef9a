// What the pooling operators share: shape rule, geometry, and the walk over the elements that a window covers.
#pragma once

#include "ops/numeric.h"
#include "ops/window.h"

namespace kilter {

//! Result shape [N, C, …] of a pool with kernel_shape, strides, pads, dilations, auto_pad and ceil_mode.
Dims pool_dims(const Attributes& attributes, const Dims& x);
void infer_pool(InferContext& context);

//! A pool whose every number is known. Planes are the channels of all images.
struct Pool {
    int64_t planes = 0;
    Triple input{}, output{}, kernel{}, stride{}, dilation{}, pad{}, pad_end{};
    Shape result;

    int64_t input_size() const { return input[0] * input[1] * input[2]; }
    int64_t output_size() const { return output[0] * output[1] * output[2]; }
    //! First element (negative inside the padding) that the window at a flat output position looks at.
    Triple start(int64_t position) const {
        return {position / (output[1] * output[2]) * stride[0] - pad[0],
                position / output[2] % output[1] * stride[1] - pad[1],
                position % output[2] * stride[2] - pad[2]};
    }
};

Pool read_pool(const Attributes& attributes, const Shape& x);

//! Calls visit(index) for the flat index, within its plane, of every real element under the window that begins at `start`.
template <class Visit>
void for_each_element(const Pool& pool, const Triple& start, Visit visit) {
    std::array<Range, 3> taps;
    for (size_t axis = 0; axis < 3; ++axis)
        taps[axis] = taps_inside(start[axis], pool.dilation[axis], pool.kernel[axis], pool.input[axis]);
    for (int64_t z = taps[0].begin; z < taps[0].end; ++z)
        for (int64_t y = taps[1].begin; y < taps[1].end; ++y)
            for (int64_t x = taps[2].begin; x < taps[2].end; ++x)
                visit(((start[0] + z * pool.dilation[0]) * pool.input[1] + start[1] + y * pool.dilation[1]) *
                          pool.input[2] +
                      start[2] + x * pool.dilation[2]);
}

//! Runs reduce(plane_values, start) → double for every output and stores the results as output 0.
template <class Reduce>
void run_pool(KernelContext& context, Reduce reduce) {
    const Tensor& x = needed(context, 0, "the input");
    require_real(x.dtype(), "the input");
    const Pool pool = read_pool(context.attributes(), x.shape());
    const Tensor values = to_reals(x);
    Tensor y(DType::f64, pool.result);
    const double* source = values.as<double>().data();
    double* target = y.as_mutable<double>().data();
#pragma omp parallel for schedule(static)
    for (int64_t plane = 0; plane < pool.planes; ++plane)
        for (int64_t position = 0; position < pool.output_size(); ++position)
            target[plane * pool.output_size() + position] =
                reduce(pool, source + plane * pool.input_size(), pool.start(position));
    store_reals(context, 0, x.dtype(), y);
}

}  // namespace kilter
