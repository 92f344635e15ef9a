// Split: cuts a tensor along one axis, into given sizes or into `num_outputs` parts of which the last may
// be smaller.
#include <fmt/format.h>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"

namespace kilter::split_op {

std::vector<int64_t> part_sizes(const Node& node, int64_t extent) {
    const auto parts = static_cast<int64_t>(node.outputs().size());
    const int64_t asked = node.attributes.get_int("num_outputs", parts);
    require(asked == parts, "num_outputs is {} but there are {} outputs", asked, parts);
    const int64_t size = extent / parts + (extent % parts != 0 ? 1 : 0);
    std::vector<int64_t> sizes;
    for (int64_t rest = extent; static_cast<int64_t>(sizes.size()) < parts; rest -= sizes.back())
        sizes.push_back(std::min(size, rest));
    return sizes;
}

void check_sizes(const std::vector<int64_t>& sizes, size_t outputs, int64_t extent) {
    require(sizes.size() == outputs, "split lists {} sizes for {} outputs", sizes.size(), outputs);
    int64_t rest = extent;
    for (const int64_t size : sizes) {
        require(size >= 0 && size <= rest, "split sizes [{}] do not add up to {}", fmt::join(sizes, ", "),
                extent);
        rest -= size;
    }
    require(rest == 0, "split sizes [{}] do not add up to {}", fmt::join(sizes, ", "), extent);
}

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    const size_t outputs = context.output_count();
    if (!x) {
        for (size_t i = 0; i < outputs; ++i) context.set_output(i, context.dtype(0));
        return;
    }
    require(!x->empty(), "a scalar cannot be split");
    const auto axis =
        static_cast<size_t>(normalize_axis(context.attributes().get_int("axis", 0), context.rank(0)));
    const Dim& extent = (*x)[axis];
    std::optional<std::vector<int64_t>> sizes;
    if (context.has_input(1)) {
        sizes = context.ints(1);
        if (sizes && extent.known()) check_sizes(*sizes, outputs, extent.value);
        require(!sizes || sizes->size() == outputs, "split lists {} sizes for {} outputs",
                sizes ? sizes->size() : 0, outputs);
    } else if (extent.known()) {
        sizes = part_sizes(context.node(), extent.value);
    }
    for (size_t i = 0; i < outputs; ++i) {
        Dims shape = *x;
        shape[axis] = sizes ? Dim(std::max<int64_t>((*sizes)[i], 0)) : outputs == 1 ? extent : Dim();
        context.set_output(i, context.dtype(0), std::move(shape));
    }
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    require(x.rank() > 0, "a scalar cannot be split");
    const auto axis = static_cast<size_t>(normalize_axis(context.attributes().get_int("axis", 0), x.rank()));
    const std::vector<int64_t> sizes =
        context.has_input(1) ? context.input(1).to_ints() : part_sizes(context.node(), x.shape()[axis]);
    check_sizes(sizes, context.output_count(), x.shape()[axis]);
    ElementMove move(context, {x});
    const Shape strides = row_major_strides(x.shape());
    const std::byte* from = move.source();
    for (size_t i = 0; i < sizes.size(); ++i) {
        Shape part = x.shape();
        part[axis] = sizes[i];
        if (context.wants_output(i)) {
            copy_block(part, move.width(), from, strides, move.target(i, part), row_major_strides(part));
            move.finish();
        }
        from += static_cast<size_t>(sizes[i] * strides[axis]) * move.width();
    }
}

KILTER_OP({.name = "Split",
           .min_inputs = 1,
           .max_inputs = 2,
           .max_outputs = kVariadic,
           .attributes = {{"axis", AttributeKind::integer}, {"num_outputs", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::split_op
