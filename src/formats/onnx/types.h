// Element types and value types (TypeProto) of ONNX, and their kilter counterparts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kilter/graph/type.h"

namespace kilter::onnx {

//! DType::undefined for numbers that kilter does not know.
DType dtype_of_onnx(int64_t data_type);
int onnx_of_dtype(DType dtype);

//! Types that are no plain tensors, or tensors of an unknown element type, are kept in ValueType::foreign.
//! `annotated` tells whether the type carries denotations, which ValueType cannot hold.
ValueType read_type(std::string_view message, bool& annotated);

//! Serialized TypeProto; empty when nothing is known about the type.
std::string write_type(const ValueType& type);

}  // namespace kilter::onnx
