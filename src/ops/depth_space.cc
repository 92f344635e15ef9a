// DepthToSpace and SpaceToDepth: blocks of channels to blocks of pixels and back. Both are a reshaped
// transpose.
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"

namespace kilter::depth_space_op {

int64_t block_of(const Attributes& attributes) {
    const int64_t block = attributes.get_int("blocksize");
    require(block > 0 && block < 32768, "blocksize must be positive, not {}", block);
    return block;
}

// In which order the channel axis is split: block coordinates before the channel (DCR) or after it (CRD).
bool blocks_first(const Attributes& attributes) {
    const std::string mode = attributes.get_string("mode", "DCR");
    require(mode == "DCR" || mode == "CRD", "mode must be 'DCR' or 'CRD', not '{}'", mode);
    return mode == "DCR";
}

Dim scaled(const Dim& dim, int64_t times) {
    int64_t product = 0;
    if (!dim.known()) return times == 1 ? dim : Dim();
    require(!__builtin_mul_overflow(dim.value, times, &product), "a dimension of {} times {} is too large",
            dim.value, times);
    return product;
}

Dim divided(const Dim& dim, int64_t by) {
    if (!dim.known()) return by == 1 ? dim : Dim();
    require(dim.value % by == 0, "a dimension of {} cannot be divided by {}", dim.value, by);
    return dim.value / by;
}

Dims result_dims(const Node& node, const Dims& x) {
    require(x.size() == 4, "expected a tensor of rank 4, found {}", to_string(x));
    const int64_t block = block_of(node.attributes);
    if (node.op() == "DepthToSpace")
        return {x[0], divided(x[1], block * block), scaled(x[2], block), scaled(x[3], block)};
    return {x[0], scaled(x[1], block * block), divided(x[2], block), divided(x[3], block)};
}

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    if (!x) return context.set_output(0, context.dtype(0), Dims(4));
    context.set_output(0, context.dtype(0), result_dims(context.node(), *x));
}

// Views the source under six axes and copies them in another order.
void move_axes(KernelContext& context, const Shape& view, const std::vector<size_t>& order,
               const Shape& result) {
    const Shape strides = row_major_strides(view);
    Shape extent;
    Shape walk;
    for (const size_t axis : order) {
        extent.push_back(view[axis]);
        walk.push_back(strides[axis]);
    }
    ElementMove move(context, {context.input(0)});
    std::byte* y = move.target(0, result);
    copy_block(extent, move.width(), move.source(), walk, y, row_major_strides(extent));
    move.finish();
}

void kernel(KernelContext& context) {
    const Shape& x = context.input(0).shape();
    Shape result;
    for (const Dim& dim : result_dims(context.node(), to_dims(x))) result.push_back(dim.value);
    const int64_t block = block_of(context.attributes());
    const bool first = blocks_first(context.attributes());
    if (context.node().op() == "DepthToSpace") {
        const int64_t channels = x[1] / (block * block);
        if (first)
            move_axes(context, {x[0], block, block, channels, x[2], x[3]}, {0, 3, 4, 1, 5, 2}, result);
        else
            move_axes(context, {x[0], channels, block, block, x[2], x[3]}, {0, 1, 4, 2, 5, 3}, result);
        return;
    }
    const Shape view{x[0], x[1], x[2] / block, block, x[3] / block, block};
    move_axes(context, view,
              first ? std::vector<size_t>{0, 3, 5, 1, 2, 4} : std::vector<size_t>{0, 1, 3, 5, 2, 4}, result);
}

const std::vector<AttributeSpec> kAttributes{{"blocksize", AttributeKind::integer, true},
                                             {"mode", AttributeKind::text}};

KILTER_OP({.name = "DepthToSpace", .attributes = kAttributes, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "SpaceToDepth", .attributes = kAttributes, .infer = infer, .kernel = kernel});

}  // namespace kilter::depth_space_op
