// Transpose: permutes dimensions; without `perm` it reverses them.
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"

namespace kilter::transpose_op {

std::vector<size_t> permutation(const Attributes& attributes, size_t rank) {
    std::vector<size_t> order(rank);
    for (size_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
    if (!attributes.has("perm")) return order;
    const std::vector<int64_t> perm = attributes.get_ints("perm");
    require(perm.size() == rank, "perm has {} entries for a tensor of rank {}", perm.size(), rank);
    std::vector<bool> seen(rank, false);
    for (size_t i = 0; i < rank; ++i) {
        order[i] = static_cast<size_t>(normalize_axis(perm[i], static_cast<int64_t>(rank), "perm entry"));
        require(!seen[order[i]], "perm lists axis {} twice", perm[i]);
        seen[order[i]] = true;
    }
    return order;
}

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    if (!x) return context.set_output(0, context.dtype(0));
    Dims shape;
    for (const size_t axis : permutation(context.attributes(), x->size())) shape.push_back((*x)[axis]);
    context.set_output(0, context.dtype(0), std::move(shape));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const Shape strides = row_major_strides(x.shape());
    Shape shape;
    Shape walk;
    for (const size_t axis : permutation(context.attributes(), x.shape().size())) {
        shape.push_back(x.shape()[axis]);
        walk.push_back(strides[axis]);
    }
    ElementMove move(context, {x});
    std::byte* y = move.target(0, shape);
    copy_block(shape, move.width(), move.source(), walk, y, row_major_strides(shape));
    move.finish();
}

KILTER_OP({.name = "Transpose",
           .attributes = {{"perm", AttributeKind::integers}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::transpose_op
