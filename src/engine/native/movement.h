// Operators that move whole tensors around and are one strided copy each. Where oneDNN knows the element type, Transpose,
// Slice and Split are views (views.cc) and come here only for what views cannot express.
#pragma once

#include "engine/builder.h"

namespace kilter::engine {

bool copy_transposed(Builder& builder, const Node& node);
bool copy_sliced(Builder& builder, const Node& node);
bool copy_split(Builder& builder, const Node& node);

}  // namespace kilter::engine
