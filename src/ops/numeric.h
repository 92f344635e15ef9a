// What the numeric reference kernels share: contiguous doubles to compute on, and checks of what they are given.
// An oracle computes in double and rounds once, when the result is stored.
#pragma once

#include <algorithm>

#include "ops/op.h"

namespace kilter {

//! The input, which must be present; `what` names it in the error.
const Tensor& needed(const KernelContext& context, size_t index, std::string_view what);
//! The shape of an input when it is present and known.
std::optional<Dims> optional_dims(const KernelContext& context, size_t index);
std::optional<Dims> optional_dims(const InferContext& context, size_t index);
//! All inputs of the node, empty tensors where absent: what apply_post_ops reads.
std::vector<Tensor> all_inputs(const KernelContext& context);

//! Elements as doubles (f64 shares the storage).
Tensor to_reals(const Tensor& tensor);
Tensor real_zeros(const Shape& shape);
//! Makes output `index` of type `dtype` from doubles; integers saturate at nothing: they wrap like Cast.
Tensor& store_reals(KernelContext& context, size_t index, DType dtype, const Tensor& reals);

//! Could both be the same number?
inline bool agree(const Dim& a, const Dim& b) { return !a.known() || !b.known() || a.value == b.value; }

//! Sum and product of extents; unknown when either is, an Error when they overflow.
Dim sum(const Dim& a, const Dim& b);
Dim product(const Dim& a, const Dim& b);

//! Throws unless the types are equal or one is not known yet.
void require_same_dtype(DType expected, DType found, std::string_view what);
//! Throws unless `dims` is absent or a list [count].
void require_vector(const std::optional<Dims>& dims, const Dim& count, std::string_view what);
//! Throws unless the type is a floating-point one that arithmetic is defined for (or not known yet).
void require_real(DType dtype, std::string_view what);

//! Number of elements of the axes [begin, end).
inline int64_t extent(const Shape& shape, size_t begin, size_t end) {
    int64_t product = 1;
    for (size_t axis = begin; axis < std::min(end, shape.size()); ++axis) product *= shape[axis];
    return product;
}

}  // namespace kilter
