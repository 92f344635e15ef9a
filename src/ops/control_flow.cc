#include "ops/control_flow.h"

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"

namespace kilter {
namespace {

size_t width_of(DType dtype) {
    require(bits(dtype) >= 8, "scanning tensors of {} is not supported", name(dtype));
    return static_cast<size_t>(bits(dtype)) / 8;
}

}  // namespace

Tensor take_slice(const Tensor& x, size_t axis, int64_t index) {
    const size_t width = width_of(x.dtype());
    Shape strides = row_major_strides(x.shape());
    const auto* source =
        static_cast<const std::byte*>(x.raw()) + static_cast<size_t>(index * strides[axis]) * width;
    Shape shape = x.shape();
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
    Tensor slice(x.dtype(), shape);
    copy_block(shape, width, source, strides, slice.raw_mutable(), row_major_strides(shape));
    return slice;
}

Tensor stack(const std::vector<Tensor>& parts, size_t axis) {
    const Tensor& first = parts.at(0);
    const size_t width = width_of(first.dtype());
    require(axis <= first.shape().size(), "axis {} is out of range for a stack of tensors of rank {}", axis,
            first.rank());
    Shape shape = first.shape();
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<int64_t>(parts.size()));
    Tensor result(first.dtype(), shape);
    Shape strides = row_major_strides(shape);
    const size_t step = static_cast<size_t>(strides[axis]) * width;
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
    auto* target = static_cast<std::byte*>(result.raw_mutable());
    for (const Tensor& part : parts) {
        require(part.shape() == first.shape() && part.dtype() == first.dtype(),
                "iterations gave tensors of different shapes, {} and {}", to_string(first.shape()),
                to_string(part.shape()));
        copy_block(part.shape(), width, part.raw(), row_major_strides(part.shape()), target, strides);
        target += step;
    }
    return result;
}

Tensor empty_stack(const ValueType& type, size_t axis) {
    require(type.dtype != DType::undefined, "nothing was computed, and the element type is not declared");
    Shape shape;
    for (const Dim& dim : type.shape.value_or(Dims())) shape.push_back(dim.known() ? dim.value : 0);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(std::min(axis, shape.size())), 0);
    return {type.dtype, shape};
}

ValueType common_type(const ValueType& a, const ValueType& b) {
    require(a.dtype == b.dtype || a.dtype == DType::undefined || b.dtype == DType::undefined,
            "a result is {} on one path and {} on the other", name(a.dtype), name(b.dtype));
    ValueType common;
    common.dtype = a.dtype == DType::undefined ? b.dtype : a.dtype;
    if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) return common;
    common.shape = *a.shape;
    for (size_t i = 0; i < common.shape->size(); ++i)
        if (!((*a.shape)[i] == (*b.shape)[i])) (*common.shape)[i] = Dim();
    return common;
}

}  // namespace kilter
