// DynamicQuantizeLinear: u8 values with the scale and zero point that just cover the tensor and zero.
#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "ops/op.h"

namespace kilter::dynamic_quantize_linear_op {

void infer(InferContext& context) {
    ValueType type = context.input(0);
    type.dtype = DType::u8;
    context.set_output(0, std::move(type));
    context.set_output(1, DType::f32, {});
    context.set_output(2, DType::u8, {});
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    float low = 0;
    float high = 0;
    for (const float value : x.as<float>()) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    const float scale = high == low ? 1.0F : (high - low) / 255.0F;
    const auto saturated = [](float value) {
        return static_cast<uint8_t>(value > 0 ? std::min(value, 255.0F) : 0.0F);
    };
    const uint8_t zero_point = saturated(std::nearbyint(-low / scale));
    Tensor y(DType::u8, x.shape());
    const std::span<uint8_t> quantized = y.as_mutable<uint8_t>();
    for (size_t i = 0; i < quantized.size(); ++i)
        quantized[i] = saturated(std::nearbyint(x.as<float>()[i] / scale) + static_cast<float>(zero_point));
    context.set_output(0, std::move(y));
    context.set_output(1, Tensor::scalar<float>(scale));
    context.set_output(2, Tensor::scalar<uint8_t>(zero_point));
}

KILTER_OP(
    {.name = "DynamicQuantizeLinear", .min_outputs = 3, .max_outputs = 3, .infer = infer, .kernel = kernel});

}  // namespace kilter::dynamic_quantize_linear_op
