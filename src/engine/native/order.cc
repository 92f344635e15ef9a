#include "engine/native/order.h"

#include <algorithm>
#include <numeric>

namespace kilter::engine {
namespace {

MemoryOrder natural(size_t rank) {
    MemoryOrder order;
    order.axes.resize(rank);
    std::iota(order.axes.begin(), order.axes.end(), size_t{0});
    return order;
}

}  // namespace

bool MemoryOrder::is_natural() const { return block == 0 && std::ranges::is_sorted(axes); }

Shape MemoryOrder::sizes(const Shape& shape) const {
    Shape result;
    for (const size_t axis : axes) result.push_back(shape[axis]);
    if (block != 0) {
        int64_t& blocks = result[place(axes.back())];
        blocks = (blocks + block - 1) / block;
        result.back() = block;
    }
    return result;
}

size_t MemoryOrder::place(size_t axis) const {
    return static_cast<size_t>(std::ranges::find(axes, axis) - axes.begin());
}

dnnl::memory::desc MemoryOrder::desc(DType dtype, const Shape& shape) const {
    if (block == 0) {
        Shape strides(shape.size(), 1);
        int64_t stride = 1;
        for (size_t i = axes.size(); i-- > 0;) {
            strides[axes[i]] = stride;
            stride *= shape[axes[i]];
        }
        if (dnnl_type(dtype) == dnnl::memory::data_type::undef || shape.empty())
            return dense_desc(dtype, shape);
        return {shape, dnnl_type(dtype), strides};
    }
    using Tag = dnnl::memory::format_tag;
    const bool wide = block == 16;
    const Tag tag = shape.size() == 3   ? (wide ? Tag::nCw16c : Tag::nCw8c)
                    : shape.size() == 4 ? (wide ? Tag::nChw16c : Tag::nChw8c)
                                        : (wide ? Tag::nCdhw16c : Tag::nCdhw8c);
    return {shape, dnnl_type(dtype), tag};
}

OrderedArray in_natural_order(Builder& builder, const Value* value) {
    const Array array = builder.dense(value);
    return {array, natural(array.shape.size()), array.shape};
}

OrderedArray in_memory_order(Builder& builder, const Value* value) {
    const Array array = builder.any(value);
    if (array.dense || !is_packed(array.desc)) return in_natural_order(builder, value);
    const dnnl::memory::dims strides = array.desc.get_strides();
    MemoryOrder order = natural(array.shape.size());
    if (!array.desc.get_inner_blks().empty()) {
        // Channels in blocks of 8 or 16, the only blocked activations there are.
        order.axes.push_back(1);
        order.block = array.desc.get_inner_blks()[0];
        const bool usual = (order.block == 16 || order.block == 8) && array.shape.size() >= 3 &&
                           array.shape.size() <= 5 && array.desc == order.desc(array.dtype, array.shape);
        if (!usual) return in_natural_order(builder, value);
        return {array, order, order.sizes(array.shape)};
    }
    std::ranges::stable_sort(order.axes, [&](size_t a, size_t b) { return strides[a] > strides[b]; });
    // Axes of size one may carry any stride; what counts is that the order describes the array.
    if (!equivalent(order.desc(array.dtype, array.shape), array.desc))
        return in_natural_order(builder, value);
    return {array, order, order.sizes(array.shape)};
}

}  // namespace kilter::engine
