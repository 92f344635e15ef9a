// Operators on shapes, and those that join, cut and arrange whole tensors.
#include <algorithm>
#include <array>
#include <numeric>

#include "formats/tensorflow/lower/lowering.h"

namespace kilter::tensorflow {
namespace {

int64_t only(const Ints& values, std::string_view what) {
    require(values.size() == 1, "{} must be one number, found {}", what, values.size());
    return values[0];
}

void lower_reshape(Lowering& l) {
    Value* shape = l.as_int64(l.input(1));
    Attributes attributes;
    // In ONNX a zero copies a dimension unless told otherwise.
    if (const Tensor* tensor = l.constant(shape))
        if (std::ranges::count(tensor->to_ints(), 0) > 0) attributes.set("allowzero", int64_t{1});
    l.result(l.emit("Reshape", {l.input(0), shape}, std::move(attributes)));
}

void lower_squeeze(Lowering& l) {
    const Ints axes = l.attributes().get_ints("squeeze_dims");
    if (axes.empty()) return l.result(l.emit("Squeeze", {l.input(0)}));
    l.result(l.emit("Squeeze", {l.input(0), l.add_ints(axes)}));
}

void lower_expand_dims(Lowering& l) { l.result(l.unsqueeze(l.input(0), {only(l.ints(1), "the axis")})); }

void lower_transpose(Lowering& l) {
    const Ints perm = l.ints(1);
    Ints sorted = perm;
    std::ranges::sort(sorted);
    Ints all(perm.size());
    std::iota(all.begin(), all.end(), 0);
    require(sorted == all, "the permutation is none");
    Value* y = l.emit("Transpose", {l.input(0)}, attributes_of({{"perm", perm}}));
    l.result(y);
}

void lower_shape(Lowering& l) { l.result(l.as_index(l.emit("Shape", {l.input(0)}), "out_type")); }

void lower_shape_n(Lowering& l) {
    for (size_t i = 0; i < l.size(); ++i)
        l.result(l.as_index(l.emit("Shape", {l.input(i)}), "out_type"), static_cast<int>(i));
}

void lower_size(Lowering& l) { l.result(l.as_index(l.emit("Size", {l.input(0)}), "out_type")); }

void lower_rank(Lowering& l) {
    if (l.input(0)->type.shape) return l.result(l.add_scalar(l.rank(l.input(0)), DType::i32));
    l.result(l.cast(l.emit("Size", {l.emit("Shape", {l.input(0)})}), DType::i32));
}

void lower_fill(Lowering& l) { l.result(l.emit("Expand", {l.input(1), l.as_int64(l.input(0))})); }

void lower_broadcast_to(Lowering& l) { l.result(l.emit("Expand", {l.input(0), l.as_int64(l.input(1))})); }

void lower_like(Lowering& l, double value) {
    l.result(l.emit("Expand", {l.add_scalar(value, l.dtype()), l.emit("Shape", {l.input(0)})}));
}

void lower_range(Lowering& l) { l.result(l.emit("Range", {l.input(0), l.input(1), l.input(2)})); }

void lower_tile(Lowering& l) { l.result(l.emit("Tile", {l.input(0), l.as_int64(l.input(1))})); }

void lower_pack(Lowering& l) {
    const int64_t axis = l.attributes().get_int("axis");
    std::vector<Value*> parts;
    for (Value* part : l.inputs()) parts.push_back(l.unsqueeze(part, {axis}));
    l.result(l.emit("Concat", parts, attributes_of({{"axis", axis}})));
}

void lower_unpack(Lowering& l) {
    const int64_t axis = l.attributes().get_int("axis");
    const int64_t count = l.attributes().get_int("num");
    constexpr int64_t kMost = 1 << 16;
    require(count >= 0 && count <= kMost, "cannot unpack into {}", count);
    if (count == 0) return;
    const std::vector<Value*> parts = l.emit_many("Split", {l.input(0)}, static_cast<size_t>(count),
                                                  attributes_of({{"axis", axis}, {"num_outputs", count}}));
    for (size_t i = 0; i < parts.size(); ++i)
        l.result(l.emit("Squeeze", {parts[i], l.add_ints({axis})}), static_cast<int>(i));
}

void concat(Lowering& l, std::vector<Value*> parts, size_t axis) {
    l.result(l.emit("Concat", std::move(parts), attributes_of({{"axis", only(l.ints(axis), "the axis")}})));
}

void lower_concat(Lowering& l) { concat(l, {l.inputs().begin() + 1, l.inputs().end()}, 0); }

void lower_concat_v2(Lowering& l) {
    require(l.size() >= 2, "needs values and an axis");
    concat(l, {l.inputs().begin(), l.inputs().end() - 1}, l.size() - 1);
}

void lower_split(Lowering& l) {
    const int64_t count = l.attributes().get_int("num_split");
    constexpr int64_t kMost = 1 << 16;
    require(count > 0 && count <= kMost, "cannot split into {}", count);
    const std::vector<Value*> parts =
        l.emit_many("Split", {l.input(1)}, static_cast<size_t>(count),
                    attributes_of({{"axis", only(l.ints(0), "the axis")}, {"num_outputs", count}}));
    for (size_t i = 0; i < parts.size(); ++i) l.result(parts[i], static_cast<int>(i));
}

void lower_split_v(Lowering& l) {
    Ints sizes = l.ints(1);
    const int64_t axis = only(l.ints(2), "the axis");
    const auto open = std::ranges::find(sizes, -1);
    if (open != sizes.end()) {
        const Dims& dims = l.dims(l.input(0));
        const Dim& whole =
            dims.at(static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis));
        if (!whole.known()) not_lowered("the size of the split axis is not known");
        *open = 0;
        *open = whole.value - std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    }
    require(!sizes.empty(), "cannot split into nothing");
    const std::vector<Value*> parts =
        l.emit_many("Split", {l.input(0), l.add_ints(sizes)}, sizes.size(), attributes_of({{"axis", axis}}));
    for (size_t i = 0; i < parts.size(); ++i) l.result(parts[i], static_cast<int>(i));
}

constexpr std::array kShapeRules{
    LowerRule{"Reshape", lower_reshape},
    LowerRule{"Squeeze", lower_squeeze},
    LowerRule{"ExpandDims", lower_expand_dims},
    LowerRule{"Transpose", lower_transpose},
    LowerRule{"Shape", lower_shape},
    LowerRule{"ShapeN", lower_shape_n},
    LowerRule{"Size", lower_size},
    LowerRule{"Rank", lower_rank},
    LowerRule{"Fill", lower_fill},
    LowerRule{"BroadcastTo", lower_broadcast_to},
    LowerRule{"ZerosLike", [](Lowering& l) { lower_like(l, 0); }},
    LowerRule{"OnesLike", [](Lowering& l) { lower_like(l, 1); }},
    LowerRule{"Range", lower_range},
    LowerRule{"Tile", lower_tile},
    LowerRule{"Pack", lower_pack},
    LowerRule{"Unpack", lower_unpack},
    LowerRule{"Concat", lower_concat},
    LowerRule{"ConcatV2", lower_concat_v2},
    LowerRule{"Split", lower_split},
    LowerRule{"SplitV", lower_split_v},
};

}  // namespace

std::span<const LowerRule> shape_rules() { return kShapeRules; }

}  // namespace kilter::tensorflow
