// MaxPool: the largest element under each window, and optionally where it was found.
#include <limits>

#include "base/fail.h"
#include "ops/pool.h"

namespace kilter::max_pool_op {

void infer(InferContext& context) {
    infer_pool(context);
    ValueType indices;
    indices.dtype = DType::i64;
    if (context.shape(0)) indices.shape = pool_dims(context.attributes(), *context.shape(0));
    context.set_output(1, std::move(indices));
}

// Flat position in the plane when the first axis varies fastest.
int64_t column_major(int64_t index, const Triple& extents) {
    const int64_t z = index / (extents[1] * extents[2]);
    const int64_t y = index / extents[2] % extents[1];
    const int64_t x = index % extents[2];
    return z + extents[0] * (y + extents[1] * x);
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const int64_t storage_order = context.attributes().get_int("storage_order");
    require(storage_order == 0 || storage_order == 1, "attribute 'storage_order' must be 0 or 1, found {}",
            storage_order);
    const Pool pool = read_pool(context.attributes(), x.shape());
    const Tensor values = to_reals(x);
    Tensor y(DType::f64, pool.result);
    Tensor found(DType::i64, pool.result);
    const double* source = values.as<double>().data();
    double* target = y.as_mutable<double>().data();
    int64_t* places = found.as_mutable<int64_t>().data();
#pragma omp parallel for schedule(static)
    for (int64_t plane = 0; plane < pool.planes; ++plane) {
        const double* elements = source + plane * pool.input_size();
        for (int64_t position = 0; position < pool.output_size(); ++position) {
            int64_t best = -1;
            for_each_element(pool, pool.start(position), [&](int64_t index) {
                if (best < 0 || elements[index] > elements[best]) best = index;
            });
            const int64_t at = plane * pool.output_size() + position;
            // Dilation may jump over every real element; the maximum of nothing is the lowest number.
            target[at] = best < 0 ? -std::numeric_limits<double>::infinity() : elements[best];
            const int64_t place = storage_order == 0 || best < 0 ? best : column_major(best, pool.input);
            places[at] = best < 0 ? -1 : plane * pool.input_size() + place;
        }
    }
    store_reals(context, 0, x.dtype(), y);
    if (context.wants_output(1)) context.set_output(1, found);
}

KILTER_OP({.name = "MaxPool",
           .max_outputs = 2,
           .attributes = {{"auto_pad", AttributeKind::text},
                          {"ceil_mode", AttributeKind::integer},
                          {"dilations", AttributeKind::integers},
                          {"kernel_shape", AttributeKind::integers, true},
                          {"pads", AttributeKind::integers},
                          {"storage_order", AttributeKind::integer},
                          {"strides", AttributeKind::integers}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::max_pool_op
