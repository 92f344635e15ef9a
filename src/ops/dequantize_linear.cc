// DequantizeLinear: y = (x - zero_point) · scale.
#include "base/convert.h"
#include "base/fail.h"
#include "graph/onnx_dtype.h"
#include "ops/quantization_granularity.h"

namespace kilter::dequantize_linear_op {

DType result_dtype(const Attributes& attributes, DType scale) {
    const int64_t code = attributes.get_int("output_dtype", 0);
    return code == 0 ? scale : dtype_from_onnx(code);
}

void infer(InferContext& context) {
    ValueType type = context.input(0);
    type.dtype = result_dtype(context.attributes(), context.dtype(1));
    context.set_output(0, std::move(type));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const Tensor& scale = context.input(1);
    const Tensor zero_point = context.has_input(2) ? context.input(2) : Tensor();
    require(zero_point.empty() || zero_point.size() == scale.size(), "{} zero points for {} scales",
            zero_point.size(), scale.size());
    require(zero_point.empty() || zero_point.dtype() == x.dtype(), "zero points of {} for elements of {}",
            name(zero_point.dtype()), name(x.dtype()));
    const QuantizationGranularity granularity(x.shape(), scale.shape(),
                                              context.attributes().get_int("axis", 1),
                                              context.attributes().get_int("block_size", 0));
    Tensor& y = context.output(0, result_dtype(context.attributes(), scale.dtype()), x.shape());
    for (int64_t i = 0; i < x.size(); ++i) {
        const int64_t which = granularity(i);
        const double zero = zero_point.empty() ? 0 : load_double(zero_point.dtype(), zero_point.raw(), which);
        store_double(
            y.dtype(), y.raw_mutable(), i,
            (load_double(x.dtype(), x.raw(), i) - zero) * load_double(scale.dtype(), scale.raw(), which));
    }
}

KILTER_OP({.name = "DequantizeLinear",
           .min_inputs = 2,
           .max_inputs = 3,
           .attributes = {{"axis", AttributeKind::integer},
                          {"block_size", AttributeKind::integer},
                          {"output_dtype", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::dequantize_linear_op
