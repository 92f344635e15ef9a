// Flatten: to a matrix whose rows are the dimensions before `axis`.
#include "base/fail.h"
#include "ops/op.h"
#include "ops/shape_data.h"

namespace kilter::flatten_op {

// Unlike other axes, this one may equal the rank.
size_t split_axis(const Attributes& attributes, int64_t rank) {
    const int64_t axis = attributes.get_int("axis", 1);
    require(axis >= -rank && axis <= rank, "axis {} is out of range for rank {}", axis, rank);
    return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    if (!x) return context.set_output(0, context.dtype(0), {Dim(), Dim()});
    const auto split =
        x->begin() + static_cast<std::ptrdiff_t>(split_axis(context.attributes(), context.rank(0)));
    const auto product = [](Dims dims) { return dim_quotient(dims, {}).value_or(Dim()); };
    context.set_output(0, context.dtype(0), {product({x->begin(), split}), product({split, x->end()})});
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const std::span<const int64_t> shape(x.shape());
    const size_t axis = split_axis(context.attributes(), x.rank());
    context.set_output(0, x.reshaped({element_count(shape.first(axis)), element_count(shape.subspan(axis))}));
}

KILTER_OP(
    {.name = "Flatten", .attributes = {{"axis", AttributeKind::integer}}, .infer = infer, .kernel = kernel});

}  // namespace kilter::flatten_op
