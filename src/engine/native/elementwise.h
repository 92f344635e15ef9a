// Element-wise kernels of our own, for what oneDNN has no fast kernel for: broadcasting over dense arrays of any numeric type.
#pragma once

#include <string_view>

#include "engine/builder.h"

namespace kilter::engine {

//! y = a (op) b with NumPy broadcasting; dense arrays of one type (f32, i32, i64). y may be a or b when shapes agree.
//! Names: add, sub, mul, div, max, min, pow (f32).
void add_native_binary(Builder& builder, std::string_view op, const Array& a, const Array& b, const Array& y);

}  // namespace kilter::engine
