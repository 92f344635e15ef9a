// Recipe: weights whose products with u8 activations cannot saturate the int16 sums of machines without VNNI.
#pragma once

#include "kilter/graph/graph.h"
#include "kilter/quantization/params.h"

namespace kilter {

//! Raises the scale of every output channel in which two neighbouring input channels could overflow. Needs one scale per
//! channel, or raises the only one. Returns the number of scales raised.
int64_t make_overflow_safe(QuantParams& params, const Tensor& weights, const Node& node, int bits);

}  // namespace kilter
