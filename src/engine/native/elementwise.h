// Element-wise kernels of our own, for what oneDNN has no fast kernel for: broadcasting over dense arrays of any numeric type.
#pragma once

#include <string_view>

#include "engine/builder.h"

namespace kilter::engine {

//! Types that add_native_binary computes with.
bool has_native_binary(std::string_view op, DType dtype);

//! y = a (op) b with NumPy broadcasting; dense arrays of one type (f32, i32, i64). y may be a or b when shapes agree.
//! Names: add, sub, mul, div, mod (sign of b), fmod (sign of a), max, min, prelu (a, or a·b below zero), pow (f32).
void add_native_binary(Builder& builder, std::string_view op, const Array& a, const Array& b, const Array& y);

//! Where a kernel that goes element by element may write `y`: over the first dense operand of its shape and type that
//! nothing reads later, else into new memory.
Array elementwise_result(Builder& builder, const Value* y, const std::vector<Array>& operands);

}  // namespace kilter::engine
