// Element types as ONNX numbers them (TensorProto.DataType): how attributes such as Cast's `to` are spelled.
#pragma once

#include "kilter/base/dtype.h"

namespace kilter {

bool is_onnx_dtype(int64_t code);
//! Throws Error for codes that ONNX does not define or that are no element type.
DType dtype_from_onnx(int64_t code);
int64_t onnx_code(DType dtype);

}  // namespace kilter
