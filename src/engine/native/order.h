// Memory order: an array whose axes lie in memory in another order (channels-last) or in blocks of channels, seen as a
// row-major array of permuted shape. Kernels that do not care which axis comes first work on it without a copy.
#pragma once

#include "engine/builder.h"

namespace kilter::engine {

//! Which logical axis lies where in memory, slowest first. A blocked axis appears twice: blocks, then within a block.
struct MemoryOrder {
    std::vector<size_t> axes;
    int64_t block = 0;  // of the last entry of `axes`, which then repeats one before it; 0: none

    bool is_natural() const;
    //! Sizes in memory order of an array of `shape`; blocks are counted with padding.
    Shape sizes(const Shape& shape) const;
    //! Place in memory order of a logical axis (of its blocks when it is blocked).
    size_t place(size_t axis) const;
    //! Describes an array of `shape` that lies in this order.
    dnnl::memory::desc desc(DType dtype, const Shape& shape) const;
};

struct OrderedArray {
    Array array;
    MemoryOrder order;
    Shape sizes;  // in memory order; the array is row-major in these
};

//! As it lies where it has no gaps, else a row-major copy.
OrderedArray in_memory_order(Builder& builder, const Value* value);
//! Row-major in the order of the logical axes.
OrderedArray in_natural_order(Builder& builder, const Value* value);

}  // namespace kilter::engine
