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

//! Channels innermost: nhwc and its 1-D and 3-D kin.
dnnl::memory::desc channels_last_desc(DType dtype, const Shape& shape);

//! Row-major without gaps, up to strides of dimensions of size one.
bool is_row_major(const dnnl::memory::desc& desc);
//! Every byte between the first and the last belongs to the array: row-major, permuted or blocked, but no view with gaps.
bool is_packed(const dnnl::memory::desc& desc);
//! The same bytes in the same places.
bool equivalent(const dnnl::memory::desc& a, const dnnl::memory::desc& b);

bool is_reference(const std::string& implementation);

//! Does this CPU multiply bfloat16? Without it products of bfloat16 run through float32.
bool has_bf16();

}  // namespace kilter::engine
