// Element-wise functions of several broadcast tensors: the frame that binary, comparison, logical and
// variadic operators share.
#pragma once

#include "ops/op.h"

namespace kilter {

//! One function for each kind of element. `natural` is for u64 where the sign matters; null: `integer`
//! serves it too.
struct BinaryFunction {
    double (*real)(double, double) = nullptr;
    int64_t (*integer)(int64_t, int64_t) = nullptr;
    uint64_t (*natural)(uint64_t, uint64_t) = nullptr;
};

//! Element type that all inputs share; undefined when none is known. Throws when two differ.
DType common_dtype(const InferContext& context);

//! All input shapes broadcast together; absent when one is unknown.
std::optional<Dims> broadcast_inputs(const InferContext& context);

//! y = function(a, b), stored as `dtype`. Throws when the element types differ or the function is not
//! defined for them.
void map_binary(const BinaryFunction& function, const Tensor& a, const Tensor& b, Tensor& y);

}  // namespace kilter
