// Which scale and zero point belong to an element: one for the tensor, one per position of an axis, or
// one per block of it.
#pragma once

#include "ops/op.h"

namespace kilter {

class QuantizationGranularity {
  public:
    //! Throws Error when `scale` fits none of the three forms.
    QuantizationGranularity(const Shape& x, const Shape& scale, int64_t axis, int64_t block_size);
    //! Index into the scales for element `index` of x.
    int64_t operator()(int64_t index) const {
        const int64_t along = index / inner_ % extent_ / block_;
        return (index / (inner_ * extent_) * outer_factor_ * scales_ + along) * inner_factor_ +
               index % inner_ * inner_step_;
    }

  private:
    int64_t inner_ = 1, extent_ = 1, block_ = 1, scales_ = 1;
    int64_t outer_factor_ = 0, inner_factor_ = 1, inner_step_ = 0;
};

}  // namespace kilter
