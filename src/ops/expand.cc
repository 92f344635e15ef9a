// Expand: broadcasts a tensor with a given shape; dimensions of one in the shape keep the tensor's own.
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"
#include "ops/shape_data.h"

namespace kilter::expand_op {

void infer(InferContext& context) {
    const std::optional<Dims> target = context.shape_data(1);
    const std::optional<Dims>& x = context.shape(0);
    if (!target || !x) {
        const std::optional<Dims>& length = context.shape(1);
        const bool ranked =
            x && length && length->size() == 1 && (*length)[0].known() && (*length)[0].value <= 64;
        if (!ranked) return context.set_output(0, context.dtype(0));
        return context.set_output(0, context.dtype(0),
                                  Dims(std::max(x->size(), static_cast<size_t>((*length)[0].value))));
    }
    Dims shape;
    for (const Dim& entry : *target) {
        const std::optional<int64_t> number = entry_number(entry);
        require(!number || *number >= 0, "cannot expand to the negative dimension {}", number.value_or(0));
        shape.push_back(entry);
    }
    shape = broadcast(*x, shape);
    context.set_output(0, context.dtype(0), shape);
    const std::optional<Dims> data = context.shape_data(0);
    if (!data || x->size() > 1 || shape.size() > 1) return;
    if (shape.empty()) return context.set_shape_data(0, *data);
    if (!shape[0].known() || shape[0].value > static_cast<int64_t>(kMaxShapeData)) return;
    const auto length = static_cast<size_t>(shape[0].value);
    if (data->size() == length)
        context.set_shape_data(0, *data);
    else if (data->size() == 1)
        context.set_shape_data(0, Dims(length, (*data)[0]));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    Shape target = context.input(1).to_ints();
    for (const int64_t dim : target) require(dim >= 0, "cannot expand to the negative dimension {}", dim);
    const Shape shape = broadcast(x.shape(), target);
    ElementMove move(context, {x});
    std::byte* y = move.target(0, shape);
    copy_block(shape, move.width(), move.source(), broadcast_strides(x.shape(), shape), y,
               row_major_strides(shape));
    move.finish();
}

KILTER_OP({.name = "Expand", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});

}  // namespace kilter::expand_op
