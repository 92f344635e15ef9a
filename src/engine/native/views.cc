// Operators that only rename memory: no step at run time. Transposed and sliced views stay strided until a consumer
// that needs row-major data asks for it.
#include <algorithm>
#include <numeric>

#include "engine/builder.h"
#include "engine/native/movement.h"
#include "ops/broadcast.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

bool build_reshape(Builder& builder, const Node& node) {
    const Value* y = node.output(0);
    if (builder.dtype(node.input(0)) != builder.dtype(y)) return false;
    Array array = builder.dense(node.input(0));
    array.desc = dense_desc(array.dtype, builder.shape(y));
    builder.alias(y, array);
    return true;
}

bool build_identity(Builder& builder, const Node& node) {
    // A Dropout that is asked for its mask, or told at run time whether this is training.
    if (node.output(1) != nullptr || node.input(2) != nullptr) return false;
    builder.alias(node.output(0), builder.any(node.input(0)));
    return true;
}

bool view_transposed(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    const Shape& shape = builder.shape(x);
    const size_t rank = shape.size();
    Shape order(rank);
    std::iota(order.rbegin(), order.rend(), 0);
    order = node.attributes.get_ints("perm", order);
    // Moving only axes of size one does not move memory.
    Shape moved;
    for (const int64_t axis : order)
        if (shape[static_cast<size_t>(axis)] != 1) moved.push_back(axis);
    if (std::ranges::is_sorted(moved)) {
        Array array = builder.dense(x);
        array.desc = dense_desc(array.dtype, builder.shape(y));
        builder.alias(y, array);
        return true;
    }
    if (dnnl_type(builder.dtype(x)) == dnnl::memory::data_type::undef || rank > DNNL_MAX_NDIMS || rank == 0)
        return false;
    Array array = builder.any(x);
    if (!array.desc.get_inner_blks().empty()) array = builder.dense(x);
    std::vector<int> permutation(rank);  // oneDNN: old axis i becomes axis permutation[i]
    for (size_t i = 0; i < rank; ++i) permutation[static_cast<size_t>(order[i])] = static_cast<int>(i);
    array.desc = array.desc.permute_axes(permutation);
    builder.alias(y, array);
    return true;
}

// A part of a strided array along `axis`.
Array part(const Array& array, size_t axis, int64_t start, const Shape& shape) {
    Array view = array;
    dnnl::memory::dims offsets(shape.size(), 0);
    offsets[axis] = start;
    const dnnl::memory::dims strides = array.desc.get_strides();
    view.desc = dnnl::memory::desc(shape, array.desc.get_data_type(), strides);
    view.offset += static_cast<size_t>(start * strides[axis]) * byte_count(array.dtype, 1);
    return view;
}

bool sliceable(Builder& builder, const Value* x) {
    return dnnl_type(builder.dtype(x)) != dnnl::memory::data_type::undef &&
           builder.shape(x).size() <= DNNL_MAX_NDIMS && !builder.shape(x).empty();
}

Array strided(Builder& builder, const Value* x) {
    const Array array = builder.any(x);
    return array.desc.get_inner_blks().empty() ? array : builder.dense(x);
}

bool view_split(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    if (!sliceable(builder, x) ||
        std::ranges::any_of(node.outputs(), [](const Value* y) { return y == nullptr; }))
        return false;
    const auto axis = static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis"), static_cast<int64_t>(builder.shape(x).size())));
    const Array array = strided(builder, x);
    int64_t start = 0;
    for (const Value* y : node.outputs()) {
        builder.alias(y, part(array, axis, start, builder.shape(y)));
        start += builder.shape(y)[axis];
    }
    return true;
}

bool view_sliced(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    if (!sliceable(builder, x)) return false;
    const Tensor* starts = builder.constant(node.input(1));
    const Tensor* axes = builder.constant(node.input(3));
    const Tensor* steps = builder.constant(node.input(4));
    if (starts == nullptr || (node.input(3) != nullptr && axes == nullptr) ||
        (node.input(4) != nullptr && steps == nullptr))
        return false;
    const Shape& shape = builder.shape(x);
    const auto rank = static_cast<int64_t>(shape.size());
    const std::vector<int64_t> begin = starts->to_ints();
    std::vector<int64_t> axis(begin.size());
    std::iota(axis.begin(), axis.end(), 0);
    if (axes != nullptr) axis = axes->to_ints();
    const std::vector<int64_t> step =
        steps != nullptr ? steps->to_ints() : std::vector<int64_t>(begin.size(), 1);
    if (std::ranges::any_of(step, [](int64_t value) { return value < 1; })) return false;
    Array array = strided(builder, x);
    dnnl::memory::dims strides = array.desc.get_strides();
    for (size_t i = 0; i < begin.size(); ++i) {
        const auto along = static_cast<size_t>(normalize_axis(axis[i], rank));
        const int64_t size = shape[along];
        const int64_t start = std::clamp<int64_t>(begin[i] < 0 ? begin[i] + size : begin[i], 0, size);
        array.offset += static_cast<size_t>(start * strides[along]) * byte_count(array.dtype, 1);
        if (builder.shape(y)[along] > 1) strides[along] *= step[i];
    }
    array.desc = dnnl::memory::desc(builder.shape(y), array.desc.get_data_type(), strides);
    builder.alias(y, array);
    return true;
}

bool build_transpose(Builder& builder, const Node& node) {
    return view_transposed(builder, node) || copy_transposed(builder, node);
}
bool build_split(Builder& builder, const Node& node) {
    return view_split(builder, node) || copy_split(builder, node);
}
bool build_slice(Builder& builder, const Node& node) {
    return view_sliced(builder, node) || copy_sliced(builder, node);
}

KILTER_KERNEL("Reshape", build_reshape);
KILTER_KERNEL("Flatten", build_reshape);
KILTER_KERNEL("Squeeze", build_reshape);
KILTER_KERNEL("Unsqueeze", build_reshape);
KILTER_KERNEL("Identity", build_identity);
KILTER_KERNEL("Dropout", build_identity);
KILTER_KERNEL("Transpose", build_transpose);
KILTER_KERNEL("Split", build_split);
KILTER_KERNEL("Slice", build_slice);

}  // namespace
}  // namespace kilter::engine
