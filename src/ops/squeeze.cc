// Squeeze and Unsqueeze: dimensions of one taken out or put in.
#include <algorithm>

#include "base/fail.h"
#include "ops/op.h"
#include "ops/shape_data.h"

namespace kilter::squeeze_op {

std::vector<bool> mark_axes(const std::vector<int64_t>& axes, int64_t rank) {
    std::vector<bool> marked(static_cast<size_t>(rank), false);
    for (const int64_t axis : axes) {
        require(axis >= -rank && axis < rank, "axis {} is out of range for rank {}", axis, rank);
        const auto index = static_cast<size_t>(axis < 0 ? axis + rank : axis);
        require(!marked[index], "axis {} is listed twice", axis);
        marked[index] = true;
    }
    return marked;
}

template <class Dimension>
std::vector<Dimension> unsqueezed(const std::vector<Dimension>& x, const std::vector<int64_t>& axes) {
    const std::vector<bool> inserted = mark_axes(axes, static_cast<int64_t>(x.size() + axes.size()));
    std::vector<Dimension> shape;
    size_t next = 0;
    for (const bool insert : inserted) shape.push_back(insert ? Dimension(1) : x[next++]);
    return shape;
}

void infer_unsqueeze(InferContext& context) {
    const std::optional<std::vector<int64_t>> axes = context.ints(1);
    const std::optional<Dims>& x = context.shape(0);
    if (!axes || !x) return context.set_output(0, context.dtype(0));
    const Dims shape = unsqueezed<Dim>(*x, *axes);
    context.set_output(0, context.dtype(0), shape);
    if (shape.size() <= 1) pass_shape_data(context);
}

void unsqueeze(KernelContext& context) {
    const Tensor& x = context.input(0);
    context.set_output(0, x.reshaped(unsqueezed<int64_t>(x.shape(), context.input(1).to_ints())));
}

void infer_squeeze(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    if (!x) return context.set_output(0, context.dtype(0));
    Dims shape;
    if (context.has_input(1)) {
        const std::optional<std::vector<int64_t>> axes = context.ints(1);
        if (!axes) return context.set_output(0, context.dtype(0));
        const std::vector<bool> dropped = mark_axes(*axes, context.rank(0));
        for (size_t i = 0; i < x->size(); ++i) {
            const Dim& dim = (*x)[i];
            require(!dropped[i] || !dim.known() || dim.value == 1, "dimension {} of {} is not 1", i,
                    to_string(*x));
            if (!dropped[i]) shape.push_back(dim);
        }
    } else {
        for (const Dim& dim : *x) {
            if (!dim.known()) return context.set_output(0, context.dtype(0));
            if (dim.value != 1) shape.push_back(dim);
        }
    }
    context.set_output(0, context.dtype(0), shape);
    if (x->size() <= 1) pass_shape_data(context);
}

void squeeze(KernelContext& context) {
    const Tensor& x = context.input(0);
    std::vector<bool> dropped;
    if (context.has_input(1)) {
        dropped = mark_axes(context.input(1).to_ints(), x.rank());
    } else {
        for (const int64_t dim : x.shape()) dropped.push_back(dim == 1);
    }
    Shape shape;
    for (size_t i = 0; i < dropped.size(); ++i) {
        require(!dropped[i] || x.shape()[i] == 1, "dimension {} of {} is not 1", i, to_string(x.shape()));
        if (!dropped[i]) shape.push_back(x.shape()[i]);
    }
    context.set_output(0, x.reshaped(std::move(shape)));
}

KILTER_OP(
    {.name = "Unsqueeze", .min_inputs = 2, .max_inputs = 2, .infer = infer_unsqueeze, .kernel = unsqueeze});
KILTER_OP({.name = "Squeeze", .min_inputs = 1, .max_inputs = 2, .infer = infer_squeeze, .kernel = squeeze});

}  // namespace kilter::squeeze_op
