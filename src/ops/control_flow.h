// What If, Loop and Scan share: checks of their bodies, slices and stacks of tensors.
#pragma once

#include "ops/op.h"

namespace kilter {

//! Element `index` along `axis`, without that axis.
Tensor take_slice(const Tensor& x, size_t axis, int64_t index);
//! Equal tensors side by side along a new axis.
Tensor stack(const std::vector<Tensor>& parts, size_t axis);
//! What a stack of nothing is: a new axis of zero before the dimensions of `type`, unknown ones being
//! zero as well.
Tensor empty_stack(const ValueType& type, size_t axis);
//! What two types have in common: the dimensions where they agree. Throws when the element types differ.
ValueType common_type(const ValueType& a, const ValueType& b);

}  // namespace kilter
