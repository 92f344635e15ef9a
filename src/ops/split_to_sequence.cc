// SplitToSequence: the parts of a tensor along one axis, as a sequence.
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"

namespace kilter::split_to_sequence_op {

// A scalar gives the size of every part but the last, a list the size of each; without either, slices of one.
std::vector<int64_t> part_sizes(const KernelContext& context, int64_t extent) {
    if (context.has_input(1) && context.input(1).rank() > 0) return context.input(1).to_ints();
    const int64_t size = context.has_input(1) ? context.input(1).to_ints().at(0) : 1;
    require(size > 0, "parts must have a positive size, found {}", size);
    std::vector<int64_t> sizes;
    for (int64_t rest = extent; rest > 0; rest -= size) sizes.push_back(std::min(size, rest));
    return sizes;
}

void infer(InferContext& context) { context.set_output(0, DType::sequence); }

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    require(x.rank() > 0, "a scalar cannot be split");
    require(bits(x.dtype()) >= 8, "splitting tensors of {} is not supported", name(x.dtype()));
    const auto axis = static_cast<size_t>(normalize_axis(context.attributes().get_int("axis", 0), x.rank()));
    // Slices of one lose the axis unless it is to be kept; with sizes given it always stays.
    const bool keeps = context.has_input(1) || context.attributes().get_int("keepdims", 1) != 0;
    const Shape strides = row_major_strides(x.shape());
    const auto width = static_cast<size_t>(bits(x.dtype())) / 8;
    const auto* from = static_cast<const std::byte*>(x.raw());
    int64_t rest = x.shape()[axis];
    std::vector<Tensor> parts;
    for (const int64_t size : part_sizes(context, rest)) {
        require(size >= 0 && size <= rest, "the sizes of the parts do not add up to {}", x.shape()[axis]);
        Shape shape = x.shape();
        shape[axis] = size;
        Tensor part(x.dtype(), shape);
        copy_block(shape, width, from, strides, part.raw_mutable(), row_major_strides(shape));
        from += static_cast<size_t>(size * strides[axis]) * width;
        rest -= size;
        if (!keeps) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
        parts.push_back(keeps ? part : part.reshaped(std::move(shape)));
    }
    require(rest == 0, "the sizes of the parts do not add up to {}", x.shape()[axis]);
    context.set_output(0, Tensor::sequence(std::move(parts)));
}

KILTER_OP({.name = "SplitToSequence",
           .max_inputs = 2,
           .attributes = {{"axis", AttributeKind::integer}, {"keepdims", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::split_to_sequence_op
