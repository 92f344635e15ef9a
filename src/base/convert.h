// Element access for every storable type, and conversion between them (the meaning of ONNX Cast).
#pragma once

#include "kilter/base/tensor.h"

namespace kilter {

//! Element `index` of a packed array as a double; throws for complex and string.
double load_double(DType dtype, const void* data, int64_t index);
//! Element of an integer or boolean array; u64 above the range of int64 wraps.
int64_t load_int(DType dtype, const void* data, int64_t index);

//! Stores with the conversion of Cast: floats round to nearest even, integers truncate towards zero and wrap.
void store_double(DType dtype, void* data, int64_t index, double value);
void store_int(DType dtype, void* data, int64_t index, int64_t value);

//! `saturate` concerns the 8-bit floats only.
Tensor convert(const Tensor& tensor, DType dtype, bool saturate = true);

}  // namespace kilter
