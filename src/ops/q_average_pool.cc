// kilter.QAveragePool and kilter.QGlobalAveragePool: t = (sum of x - x_zero_point)·(x_scale / count), the sum exact.
#include "base/convert.h"
#include "base/fail.h"
#include "ops/integer_result.h"
#include "ops/pool.h"

namespace kilter::q_average_pool_op {

void infer(InferContext& context) {
    const DType dtype = result_type(context.attributes()).dtype;
    if (!context.shape(0)) return context.set_output(0, dtype);
    context.set_output(0, dtype, pool_dims(context.attributes(), *context.shape(0)));
}

void infer_global(InferContext& context) {
    const DType dtype = result_type(context.attributes()).dtype;
    if (!context.shape(0)) return context.set_output(0, dtype);
    Dims dims = *context.shape(0);
    require(dims.size() >= 3, "the input must have shape [N, C, …], found {}", to_string(dims));
    for (size_t axis = 2; axis < dims.size(); ++axis) dims[axis] = 1;
    context.set_output(0, dtype, std::move(dims));
}

void store(Tensor& y, int64_t index, double sum, int64_t count, float x_scale, const ResultType& type) {
    const float factor = x_scale / static_cast<float>(std::max<int64_t>(count, 1));
    const float t = static_cast<float>(sum) * factor;
    if (type.dtype == DType::f32)
        store_double(DType::f32, y.raw_mutable(), index, t);
    else
        store_int(type.dtype, y.raw_mutable(), index, requantize(t, type));
}

void kernel(KernelContext& context) {
    const Attributes& attributes = context.attributes();
    const Tensor x =
        centered_reals(needed(context, 0, "the input"), attributes.get_int("x_zero_point"), "the input");
    const ResultType type = result_type(attributes);
    const float x_scale = attributes.get_float("x_scale", 1.0F);
    const Pool pool = read_pool(attributes, x.shape());
    const bool include_pad = attributes.get_int("count_include_pad") != 0;
    const int64_t whole = pool.kernel[0] * pool.kernel[1] * pool.kernel[2];
    Tensor& y = context.output(0, type.dtype, pool.result);
    for (int64_t plane = 0; plane < pool.planes; ++plane) {
        const double* elements = x.as<double>().data() + plane * pool.input_size();
        for (int64_t position = 0; position < pool.output_size(); ++position) {
            double sum = 0;
            int64_t count = 0;
            for_each_element(pool, pool.start(position), [&](int64_t index) {
                sum += elements[index];
                ++count;
            });
            store(y, plane * pool.output_size() + position, sum, include_pad ? whole : count, x_scale, type);
        }
    }
}

void global_kernel(KernelContext& context) {
    const Attributes& attributes = context.attributes();
    const Tensor x =
        centered_reals(needed(context, 0, "the input"), attributes.get_int("x_zero_point"), "the input");
    const ResultType type = result_type(attributes);
    const int64_t plane = extent(x.shape(), 2, x.shape().size());
    Shape shape(x.shape().size(), 1);
    shape[0] = x.dim(0);
    shape[1] = x.dim(1);
    Tensor& y = context.output(0, type.dtype, shape);
    for (int64_t i = 0; i < y.size(); ++i) {
        double sum = 0;
        for (int64_t j = 0; j < plane; ++j) sum += x.as<double>()[static_cast<size_t>(i * plane + j)];
        store(y, i, sum, plane, attributes.get_float("x_scale", 1.0F), type);
    }
}

KILTER_OP({.name = "QAveragePool",
           .domain = kKilterDomain,
           .attributes = with_result_attributes({{"auto_pad", AttributeKind::text},
                                                 {"ceil_mode", AttributeKind::integer},
                                                 {"count_include_pad", AttributeKind::integer},
                                                 {"dilations", AttributeKind::integers},
                                                 {"kernel_shape", AttributeKind::integers, true},
                                                 {"pads", AttributeKind::integers},
                                                 {"strides", AttributeKind::integers},
                                                 {"x_scale", AttributeKind::real},
                                                 {"x_zero_point", AttributeKind::integer}}),
           .infer = infer,
           .kernel = kernel});

KILTER_OP({.name = "QGlobalAveragePool",
           .domain = kKilterDomain,
           .attributes = with_result_attributes({{"x_scale", AttributeKind::real},
                                                 {"x_zero_point", AttributeKind::integer}}),
           .infer = infer_global,
           .kernel = global_kernel});

}  // namespace kilter::q_average_pool_op
