// Walking tensors in the order of a larger shape they are broadcast to.
#pragma once

#include <vector>

#include "kilter/base/tensor.h"

namespace kilter {

//! Row-major strides in elements.
Shape row_major_strides(const Shape& shape);

//! Strides that walk a tensor of shape `from` in row-major order of shape `to`: zero where it repeats.
//! Throws when it does not fit.
Shape broadcast_strides(const Shape& from, const Shape& to);

//! Visits the elements of a tensor of shape `from` in row-major order of shape `to`; from must broadcast
//! to `to`.
class BroadcastIndex {
  public:
    BroadcastIndex(const Shape& from, const Shape& to);
    int64_t offset() const { return offset_; }
    void next();

  private:
    Shape to_, strides_, position_;
    int64_t offset_ = 0;
};

//! Walks several tensors in step through the shape they broadcast to, one innermost run at a time.
//! Axes along which all of them are contiguous or repeated are merged, so that equal shapes make one long
//! run.
class BroadcastRows {
  public:
    BroadcastRows(const std::vector<Shape>& from, const Shape& to);
    int64_t count() const { return count_; }    // rows
    int64_t length() const { return length_; }  // elements in a row
    int64_t step(size_t operand) const { return steps_[operand]; }
    int64_t offset(size_t operand) const { return offsets_[operand]; }
    void next();

  private:
    Shape outer_, position_;
    std::vector<Shape> strides_;  // by outer axis, then operand
    Shape steps_, offsets_;
    int64_t count_ = 1, length_ = 1;
};

}  // namespace kilter
