// Quantization parameters: scale and zero point of the affine map real = scale · (integer - zero_point), and how they follow
// from a range or from weights. docs/arithmetic.md holds the derivation.
#pragma once

#include <vector>

#include "kilter/base/tensor.h"
#include "kilter/calibration/stats.h"

namespace kilter {

//! asym: the zero point is where the range puts it; sym: it is in the middle of the integers.
enum class Scheme { asym, sym };
enum class Granularity { per_channel, per_tensor };

std::string_view name(Scheme scheme);
std::string_view name(Granularity granularity);
Scheme scheme(std::string_view name);            // throws Error listing the names
Granularity granularity(std::string_view name);  // accepts per-channel and per_channel; throws Error

struct QuantParams {
    DType dtype = DType::u8;
    std::vector<float> scales;         // one, or one for every position of `axis`
    std::vector<int32_t> zero_points;  // as many
    int axis = -1;                     // -1: one parameter set for the whole tensor
    bool operator==(const QuantParams&) const = default;
};

//! Parameters of an activation. Zero is always represented exactly; a range that never goes below zero has zero point 0.
//! A range without extent (all zeros) gets scale 1. `dtype` is u8 or i8, `bits` 2 to 8.
QuantParams activation_params(Range range, DType dtype = DType::u8, Scheme scheme = Scheme::asym,
                              int bits = 8);

//! Symmetric i8 parameters of weights: one set for each position of `axis`, or one in all when `axis` is -1.
//! Channels that are next to zero get the scale of a somewhat larger one (docs/arithmetic.md, "Weights").
QuantParams weight_params(const Tensor& weights, int axis, int bits = 8);

//! round(x / scale) + zero_point, rounded half to even and saturated; the meaning of QuantizeLinear.
//! Weights of fewer than 8 bits saturate at ±(2^(bits-1) - 1).
Tensor quantize_tensor(const Tensor& tensor, const QuantParams& params, int bits = 8);
//! scale · (x - zero_point) as f32; the meaning of DequantizeLinear.
Tensor dequantize_tensor(const Tensor& tensor, const QuantParams& params);

//! Raises the scales of weights whose bias would not fit into int32 at scale x_scale · w_scale. Returns whether it did.
bool fit_bias(QuantParams& weights, const Tensor& bias, float x_scale);
//! int32 bias at scale x_scale · w_scale[channel]; its parameters are in `params`.
Tensor quantize_bias(const Tensor& bias, const QuantParams& weights, float x_scale, QuantParams& params);

}  // namespace kilter
