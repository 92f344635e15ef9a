// Index tensors of Gather… and Scatter…: i32 or i64, negative ones count from the end.
#pragma once

#include "engine/builder.h"

namespace kilter::engine {

inline bool is_index_type(DType dtype) { return dtype == DType::i64 || dtype == DType::i32; }

//! Do indices of shape `sizes` lie within data of `shape`, but along `axis`?
inline bool fits(const Shape& sizes, const Shape& shape, size_t axis) {
    if (sizes.size() != shape.size()) return false;
    for (size_t i = 0; i < sizes.size(); ++i)
        if (i != axis && sizes[i] > shape[i]) return false;
    return true;
}

class Indices {
  public:
    Indices(DType dtype, const char* data) : wide_(dtype == DType::i64), data_(data) {}
    //! Entry `at` within [0, limit), or -1 when it is out of range.
    int64_t get(int64_t at, int64_t limit) const {
        int64_t index =
            wide_ ? reinterpret_cast<const int64_t*>(data_)[at] : reinterpret_cast<const int32_t*>(data_)[at];
        if (index < 0) index += limit;
        return index < 0 || index >= limit ? -1 : index;
    }

  private:
    bool wide_;
    const char* data_;
};

}  // namespace kilter::engine
