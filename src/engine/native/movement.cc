#include "engine/native/movement.h"

#include <algorithm>
#include <numeric>

#include "engine/native/copy.h"
#include "ops/broadcast.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

bool movable(const Builder& builder, const Value* value) { return bits(builder.dtype(value)) >= 8; }

bool build_expand(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    if (!movable(builder, x)) return false;
    if (builder.shape(x) == builder.shape(node.output(0))) {
        builder.alias(node.output(0), builder.any(x));
        return true;
    }
    const StridedArray source = strided(builder, x);
    const Array result = builder.dense_result(node.output(0));
    Shape strides(result.shape.size(), 0);
    const size_t shift = strides.size() - source.strides.size();
    for (size_t i = 0; i < source.strides.size(); ++i)
        if (source.array.shape[i] != 1) strides[i + shift] = source.strides[i];
    add_strided_copy(builder, source.array, 0, strides, result, 0, row_major_strides(result.shape),
                     result.shape);
    return true;
}

bool build_tile(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    if (!movable(builder, x)) return false;
    const StridedArray source = strided(builder, x);
    const Array result = builder.dense_result(node.output(0));
    const Shape target = row_major_strides(result.shape);
    // Every axis becomes two: how often, and along the source.
    Shape extent;
    Shape from;
    Shape to;
    for (size_t i = 0; i < source.strides.size(); ++i) {
        const int64_t size = source.array.shape[i];
        extent.insert(extent.end(), {result.shape[i] / size, size});
        from.insert(from.end(), {0, source.strides[i]});
        to.insert(to.end(), {size * target[i], target[i]});
    }
    add_strided_copy(builder, source.array, 0, from, result, 0, to, extent);
    return true;
}

// The source seen with axes split in two, in the order of the result.
bool build_blocks(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    if (!movable(builder, x) || builder.shape(x).size() != 4) return false;
    const bool to_space = node.op() == "DepthToSpace";
    const bool columns_first = node.attributes.get_string("mode", "DCR") == "CRD";
    const int64_t block = node.attributes.get_int("blocksize", 1);
    const StridedArray source = strided(builder, x);
    const Array result = builder.dense_result(node.output(0));
    const Shape target = row_major_strides(result.shape);
    const Shape& s = source.strides;
    const Shape& shape = source.array.shape;
    const Shape& small = to_space ? shape : result.shape;  // many channels
    const int64_t channels = to_space ? result.shape[1] : shape[1];
    const Shape extent{small[0], channels, small[2], block, small[3], block};
    // Strides of channel, block row and block column within the deep side.
    const auto deep = [&](int64_t stride) {
        return columns_first ? Shape{block * block * stride, block * stride, stride}
                             : Shape{stride, block * channels * stride, channels * stride};
    };
    const auto split = [&](const Shape& strides, bool is_deep) {
        if (!is_deep)
            return Shape{strides[0], strides[1],         block * strides[2],
                         strides[2], block * strides[3], strides[3]};
        const Shape parts = deep(strides[1]);
        return Shape{strides[0], parts[0], strides[2], parts[1], strides[3], parts[2]};
    };
    add_strided_copy(builder, source.array, 0, split(s, to_space), result, 0, split(target, !to_space),
                     extent);
    return true;
}

KILTER_KERNEL("Expand", build_expand);
KILTER_KERNEL("Tile", build_tile);
KILTER_KERNEL("DepthToSpace", build_blocks);
KILTER_KERNEL("SpaceToDepth", build_blocks);

}  // namespace

bool copy_transposed(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    if (!movable(builder, x)) return false;
    const StridedArray source = strided(builder, x);
    Shape order(source.strides.size());
    std::iota(order.rbegin(), order.rend(), 0);
    order = node.attributes.get_ints("perm", order);
    Shape strides;
    for (const int64_t axis : order) strides.push_back(source.strides[static_cast<size_t>(axis)]);
    const Array result = builder.dense_result(node.output(0));
    add_strided_copy(builder, source.array, 0, strides, result, 0, row_major_strides(result.shape),
                     result.shape);
    return true;
}

bool copy_sliced(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    const Tensor* starts = builder.constant(node.input(1));
    const Tensor* axes = builder.constant(node.input(3));
    const Tensor* steps = builder.constant(node.input(4));
    if (!movable(builder, x) || starts == nullptr || (node.input(3) != nullptr && axes == nullptr) ||
        (node.input(4) != nullptr && steps == nullptr))
        return false;
    const Shape& shape = builder.shape(x);
    const std::vector<int64_t> begin = starts->to_ints();
    const StridedArray source = strided(builder, x);
    Shape strides = source.strides;
    int64_t offset = 0;
    for (size_t i = 0; i < begin.size(); ++i) {
        const int64_t listed = axes != nullptr ? axes->to_ints()[i] : static_cast<int64_t>(i);
        const auto axis = static_cast<size_t>(normalize_axis(listed, static_cast<int64_t>(shape.size())));
        const int64_t step = steps != nullptr ? steps->to_ints()[i] : 1;
        const int64_t start = begin[i] < 0 ? begin[i] + shape[axis] : begin[i];
        // The result is not empty, so a clamped start lies on an element.
        offset += std::clamp<int64_t>(start, 0, shape[axis] - 1) * source.strides[axis];
        if (builder.shape(node.output(0))[axis] > 1) strides[axis] *= step;
    }
    const Array result = builder.dense_result(node.output(0));
    add_strided_copy(builder, source.array, offset, strides, result, 0, row_major_strides(result.shape),
                     result.shape);
    return true;
}

bool copy_split(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    if (!movable(builder, x)) return false;
    const auto rank = static_cast<int64_t>(builder.shape(x).size());
    const auto axis = static_cast<size_t>(normalize_axis(node.attributes.get_int("axis"), rank));
    if (std::ranges::any_of(node.outputs(), [](const Value* y) { return y == nullptr; })) return false;
    const StridedArray source = strided(builder, x);
    int64_t start = 0;
    for (const Value* y : node.outputs()) {
        const Array result = builder.dense_result(y);
        add_strided_copy(builder, source.array, start * source.strides[axis], source.strides, result, 0,
                         row_major_strides(result.shape), result.shape);
        start += result.shape[axis];
    }
    return true;
}

}  // namespace kilter::engine
