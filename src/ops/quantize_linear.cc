// QuantizeLinear: y = saturate(round(x / scale) + zero_point), rounding half to even.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/convert.h"
#include "base/fail.h"
#include "graph/onnx_dtype.h"
#include "ops/quantization_granularity.h"

namespace kilter::quantize_linear_op {

DType result_dtype(const Attributes& attributes, DType zero_point) {
    if (zero_point != DType::undefined) return zero_point;
    const int64_t code = attributes.get_int("output_dtype", 0);
    return code == 0 ? DType::u8 : dtype_from_onnx(code);
}

void infer(InferContext& context) {
    ValueType type = context.input(0);
    const bool unknown = context.has_input(2) && context.dtype(2) == DType::undefined;
    type.dtype = unknown ? DType::undefined : result_dtype(context.attributes(), context.dtype(2));
    context.set_output(0, std::move(type));
}

// Clamped to what the integer type holds; NaN becomes the lowest value, as a clamp of a comparison-based
// kernel gives.
void store_saturated(DType dtype, void* data, int64_t index, double value) {
    const double lowest = is_signed(dtype) ? -std::ldexp(1.0, bits(dtype) - 1) : 0;
    const double highest = std::ldexp(1.0, bits(dtype) - (is_signed(dtype) ? 1 : 0)) - 1;
    store_int(dtype, data, index, static_cast<int64_t>(value > lowest ? std::min(value, highest) : lowest));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const Tensor& scale = context.input(1);
    const Tensor zero_point = context.has_input(2) ? context.input(2) : Tensor();
    const DType dtype = result_dtype(context.attributes(), zero_point.dtype());
    require(zero_point.empty() || zero_point.size() == scale.size(), "{} zero points for {} scales",
            zero_point.size(), scale.size());
    const QuantizationGranularity granularity(x.shape(), scale.shape(),
                                              context.attributes().get_int("axis", 1),
                                              context.attributes().get_int("block_size", 0));
    const bool saturate = context.attributes().get_int("saturate", 1) != 0;
    const bool integers = is_integer(dtype);
    // Small floats are converted from f32 in the end, all at once.
    Tensor y(integers ? dtype : DType::f32, x.shape());
    if (y.bytes() > 0) std::memset(y.raw_mutable(), 0, y.bytes());
    for (int64_t i = 0; i < x.size(); ++i) {
        const int64_t which = granularity(i);
        // The division is one of f32: a wider one would round differently at ties.
        const auto quotient = static_cast<float>(load_double(x.dtype(), x.raw(), i)) /
                              static_cast<float>(load_double(scale.dtype(), scale.raw(), which));
        const double zero = zero_point.empty() ? 0 : load_double(zero_point.dtype(), zero_point.raw(), which);
        if (integers)
            store_saturated(dtype, y.raw_mutable(), i, std::nearbyint(quotient) + zero);
        else
            store_double(DType::f32, y.raw_mutable(), i, quotient + zero);
    }
    context.set_output(0, integers ? std::move(y) : convert(y, dtype, saturate));
}

KILTER_OP({.name = "QuantizeLinear",
           .min_inputs = 2,
           .max_inputs = 3,
           .attributes = {{"axis", AttributeKind::integer},
                          {"block_size", AttributeKind::integer},
                          {"output_dtype", AttributeKind::integer},
                          {"precision", AttributeKind::integer},
                          {"saturate", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::quantize_linear_op
