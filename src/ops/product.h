// Matrix products in all forms of numpy.matmul, for the operators of the MatMul family.
#pragma once

#include "ops/op.h"

namespace kilter {

//! Result shape; throws when the inner dimensions differ or the batch dimensions do not broadcast.
Dims product_dims(const Dims& a, const Dims& b);
//! The shape with its last two dimensions swapped; the rank must be 2 or more.
Dims transposed_dims(const Dims& dims, std::string_view what);

//! a·b of two f64 tensors, or of two u64 tensors (modulo 2^64, which is right for every integer type).
Tensor product(const Tensor& a, const Tensor& b);
//! A copy of an f64 tensor with the last two dimensions swapped.
Tensor transposed(const Tensor& tensor, std::string_view what);

//! Elements of an integer tensor as u64 words, and back into output `index`.
Tensor to_words(const Tensor& tensor);
void store_words(KernelContext& context, size_t index, DType dtype, const Tensor& words);

}  // namespace kilter
