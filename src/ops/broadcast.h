// Walking a tensor in the order of a larger shape it is broadcast to.
#pragma once

#include "kilter/base/tensor.h"

namespace kilter {

//! Row-major strides in elements.
Shape row_major_strides(const Shape& shape);

//! Visits the elements of a tensor of shape `from` in row-major order of shape `to`; from must broadcast to `to`.
class BroadcastIndex {
  public:
    BroadcastIndex(const Shape& from, const Shape& to);
    int64_t offset() const { return offset_; }
    void next();

  private:
    Shape to_, strides_, position_;
    int64_t offset_ = 0;
};

}  // namespace kilter
