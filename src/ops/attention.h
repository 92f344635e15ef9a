// What the attention operators of ONNX share.
#pragma once

#include "kilter/base/tensor.h"

namespace kilter {

//! Repeats every key head of an f64 tensor [B, heads, S, D] for the query heads that share it.
Tensor shared_heads(const Tensor& x, int64_t heads);

}  // namespace kilter
