// Moving elements of any type: what Transpose, Slice, Concat, Gather, … are made of.
// Elements are moved as bytes; 4-bit elements are spread to bytes first, and strings travel as positions
// in a pool.
#pragma once

#include <vector>

#include "ops/op.h"

namespace kilter {

//! Copies a block of `extent` elements. Strides are in elements and may be zero or negative; runs are
//! copied with memcpy.
void copy_block(const Shape& extent, size_t width, const void* source, const Shape& source_strides,
                void* target, const Shape& target_strides);

//! The frame of a kernel that only moves elements from its sources to one output. Call finish() at the end.
class ElementMove {
  public:
    ElementMove(KernelContext& context, std::vector<Tensor> sources);

    size_t width() const { return width_; }  // bytes of an element, here
    const std::byte* source(size_t index = 0) const {
        return static_cast<const std::byte*>(sources_[index].raw());
    }
    //! Memory for output `output`; any number of outputs may be moved one after the other, each with its
    //! finish().
    std::byte* target(size_t output, const Shape& shape);
    void finish();

  private:
    KernelContext& context_;
    DType dtype_;
    size_t width_;
    std::vector<Tensor> sources_;
    std::vector<std::string> pool_;
    Tensor moved_;  // when the output cannot be written directly
    size_t output_ = 0;
};

//! Output 0 becomes the parts, one after the other along `axis`; they must agree in everything else.
void join(KernelContext& context, const std::vector<Tensor>& parts, size_t axis);

//! Throws unless a result of this type and shape can be held in memory: guards against absurd sizes in a
//! model.
void require_reasonable_size(DType dtype, const Shape& shape);

}  // namespace kilter
