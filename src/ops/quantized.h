// What the integer convolutions and products share: values without their zero point, and rounding back to integers.
// docs of ONNX: real = scale * (quantized - zero_point); results round half to even and saturate.
#pragma once

#include "ops/op.h"

namespace kilter {

//! A zero point or scale for every slice of a tensor: a scalar (also [1]), a list along `axis`, or a full-rank tensor
//! that broadcasts. Returned as f64 of a shape that broadcasts to a tensor of `rank` axes.
Tensor per_slice(const Tensor& parameter, int axis, int rank, std::string_view what);

//! quantized - zero_point as f64; an empty zero point is 0.
Tensor centered(const Tensor& quantized, const Tensor& zero_point);

//! values *= factor, factor broadcasting.
void scale_by(Tensor& values, const Tensor& factor);

//! Stores round(value / scale) + zero_point as output `index` in the type of the zero point.
void store_quantized(KernelContext& context, size_t index, const Tensor& values, const Tensor& scale,
                     const Tensor& zero_point);

}  // namespace kilter
