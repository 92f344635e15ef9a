// Value types of ONNX (TypeProto) and their kilter counterpart.
#pragma once

#include <string>
#include <string_view>

#include "kilter/graph/type.h"

namespace kilter::onnx {

//! Types that are no plain tensors, or tensors of an unknown element type, are kept in ValueType::foreign.
//! `annotated` tells whether the type carries denotations, which ValueType cannot hold.
ValueType read_type(std::string_view message, bool& annotated);

//! Serialized TypeProto; empty when nothing is known about the type.
std::string write_type(const ValueType& type);

}  // namespace kilter::onnx
