// Concat: joins tensors along one axis.
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/numeric.h"
#include "ops/shape_data.h"

namespace kilter::concat_op {

size_t axis_of(const Attributes& attributes, int64_t rank) {
    require(rank > 0, "scalars cannot be concatenated");
    return static_cast<size_t>(normalize_axis(attributes.get_int("axis"), rank));
}

// Dimensions along the axis add up as long as all are known; the others must agree, and the most precise
// one is kept.
Dims joined(const InferContext& context, size_t axis) {
    Dims shape = *context.shape(0);
    for (size_t i = 1; i < context.input_count(); ++i) {
        const Dims& other = *context.shape(i);
        require(other.size() == shape.size(), "inputs have different ranks: {} and {}", to_string(shape),
                to_string(other));
        for (size_t k = 0; k < shape.size(); ++k) {
            if (k == axis) {
                int64_t sum = 0;
                const bool known = shape[k].known() && other[k].known();
                if (known)
                    require(!__builtin_add_overflow(shape[k].value, other[k].value, &sum),
                            "the result is too large");
                shape[k] = known ? Dim(sum) : Dim();
                continue;
            }
            require(!shape[k].known() || !other[k].known() || shape[k].value == other[k].value,
                    "inputs differ beside axis {}: {} and {}", axis, to_string(*context.shape(0)),
                    to_string(other));
            if (!shape[k].known() && (other[k].known() || shape[k].symbol.empty())) shape[k] = other[k];
        }
    }
    return shape;
}

void infer(InferContext& context) {
    const DType dtype = common_dtype(context);
    bool known = true;
    for (size_t i = 0; i < context.input_count(); ++i) known = known && context.shape(i).has_value();
    if (!known) return context.set_output(0, dtype);
    context.set_output(0, dtype, joined(context, axis_of(context.attributes(), context.rank(0))));
    if (context.rank(0) != 1) return;
    Dims data;
    for (size_t i = 0; i < context.input_count(); ++i) {
        const std::optional<Dims> part = context.shape_data(i);
        if (part) {
            data.insert(data.end(), part->begin(), part->end());
            continue;
        }
        // Entries of an unknown part are unknown, but the others keep their places.
        const Dim& length = (*context.shape(i))[0];
        if (!length.known() || length.value > static_cast<int64_t>(kMaxShapeData)) return;
        data.resize(data.size() + static_cast<size_t>(length.value));
    }
    context.set_shape_data(0, std::move(data));
}

void kernel(KernelContext& context) {
    join(context, all_inputs(context), axis_of(context.attributes(), context.input(0).rank()));
}

KILTER_OP({.name = "Concat",
           .min_inputs = 1,
           .max_inputs = kVariadic,
           .attributes = {{"axis", AttributeKind::integer, true}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::concat_op

namespace kilter {

void join(KernelContext& context, const std::vector<Tensor>& parts, size_t axis) {
    Shape shape = parts.at(0).shape();
    for (const Tensor& part : std::span(parts).subspan(1)) {
        require(part.rank() == parts[0].rank(), "inputs have different ranks: {} and {}", shape.size(),
                part.rank());
        Shape expected = shape;
        expected[axis] = part.shape()[axis];
        require(part.shape() == expected, "inputs differ beside axis {}: {} and {}", axis,
                to_string(parts[0].shape()), to_string(part.shape()));
        shape[axis] += part.shape()[axis];
    }
    ElementMove move(context, parts);
    std::byte* y = move.target(0, shape);
    const Shape strides = row_major_strides(shape);
    for (size_t i = 0; i < parts.size(); ++i) {
        const Shape& part = parts[i].shape();
        copy_block(part, move.width(), move.source(i), row_major_strides(part), y, strides);
        y += static_cast<size_t>(part[axis] * strides[axis]) * move.width();
    }
    move.finish();
}

}  // namespace kilter
