// Strided views of arrays for products: heads of attention, transposed matrices, arrays seen with another rank.
#pragma once

#include "engine/builder.h"

namespace kilter::engine {

//! Dimensions and strides of the last two axes exchanged.
dnnl::memory::desc transposed(const dnnl::memory::desc& desc);
//! Dimensions of one in front until it has `rank` of them.
dnnl::memory::desc with_rank(const dnnl::memory::desc& desc, size_t rank);
//! The value in a form without blocks: row-major or strided.
Array plain(Builder& builder, const Value* value);
//! `array`, seen as `seen`, the way a kernel wants it: as it stands, or copied when no fast kernel takes the view.
Array fitted(Builder& builder, const Array& array, const dnnl::memory::desc& seen,
             const dnnl::memory::desc& wanted);

}  // namespace kilter::engine
