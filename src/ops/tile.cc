// Tile: repeats a tensor along each axis.
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"

namespace kilter::tile_op {

int64_t repeated(int64_t extent, int64_t times) {
    int64_t product = 0;
    require(times >= 0 && !__builtin_mul_overflow(extent, times, &product),
            "cannot repeat a dimension of {} {} times", extent, times);
    return product;
}

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    if (!x) return context.set_output(0, context.dtype(0));
    const auto repeats = context.ints(1);
    Dims shape = *x;
    if (repeats)
        require(repeats->size() == shape.size(), "{} repeats for a tensor of rank {}", repeats->size(),
                shape.size());
    for (size_t i = 0; i < shape.size(); ++i) {
        if (!repeats || (!shape[i].known() && (*repeats)[i] != 1))
            shape[i] = Dim();
        else if (shape[i].known())
            shape[i] = repeated(shape[i].value, (*repeats)[i]);
    }
    context.set_output(0, context.dtype(0), std::move(shape));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const std::vector<int64_t> repeats = context.input(1).to_ints();
    require(repeats.size() == x.shape().size(), "{} repeats for a tensor of rank {}", repeats.size(),
            x.rank());
    // A repeated axis is two: the repetition, which stands still in the source, and the axis itself.
    const Shape strides = row_major_strides(x.shape());
    Shape shape;
    Shape extent;
    Shape walk;
    for (size_t i = 0; i < repeats.size(); ++i) {
        shape.push_back(repeated(x.shape()[i], repeats[i]));
        extent.insert(extent.end(), {repeats[i], x.shape()[i]});
        walk.insert(walk.end(), {0, strides[i]});
    }
    ElementMove move(context, {x});
    std::byte* y = move.target(0, shape);
    copy_block(extent, move.width(), move.source(), walk, y, row_major_strides(extent));
    move.finish();
}

KILTER_OP({.name = "Tile", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});

}  // namespace kilter::tile_op
