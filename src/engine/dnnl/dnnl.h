// The little of oneDNN that all kernels share: the engine, descriptors of dense arrays, names of types.
#pragma once

#include <dnnl.hpp>
#include <string>

#include "kilter/base/tensor.h"

namespace kilter::engine {

const dnnl::engine& cpu();

//! undef for types oneDNN 3.2 does not know (64-bit integers, booleans, …).
dnnl::memory::data_type dnnl_type(DType dtype);

//! Row-major; rank 0 becomes one dimension of 1. Empty when oneDNN does not know the type.
dnnl::memory::desc dense_desc(DType dtype, const Shape& shape);
dnnl::memory::dims dnnl_dims(const Shape& shape);
dnnl::memory::desc any_desc(DType dtype, const Shape& shape);

bool is_reference(const std::string& implementation);

}  // namespace kilter::engine
