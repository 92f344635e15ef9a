// Slice: every step-th element between start and end along some axes; bounds are clamped, steps may be
// negative.
#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"
#include "ops/shape_data.h"

namespace kilter::slice_op {

struct Cut {
    int64_t start, step, count;
};

Cut cut(int64_t start, int64_t end, int64_t step, int64_t extent) {
    require(step != 0, "the step of a slice must not be 0");
    require(step != std::numeric_limits<int64_t>::min(), "the step {} of a slice is out of range", step);
    if (start < 0) start += extent;
    if (end < 0) end += extent;
    const int64_t low = step > 0 ? 0 : -1;  // one before the first element, when walking backwards
    const int64_t high = step > 0 ? extent : extent - 1;
    start = std::clamp(start, low, std::max(high, low));
    end = std::clamp(end, low, std::max(high, low));
    const int64_t distance = step > 0 ? end - start : start - end;
    const int64_t width = step > 0 ? step : -step;
    return {start, step, distance <= 0 ? 0 : (distance - 1) / width + 1};
}

std::vector<size_t> axes_or_default(const std::optional<std::vector<int64_t>>& axes, size_t count,
                                    int64_t rank) {
    std::vector<size_t> result;
    for (size_t i = 0; i < count; ++i) {
        const int64_t axis = axes ? (*axes)[i] : static_cast<int64_t>(i);
        require(axis >= -rank && axis < rank, "axis {} is out of range for rank {}", axis, rank);
        result.push_back(static_cast<size_t>(axis < 0 ? axis + rank : axis));
        require(std::count(result.begin(), result.end(), result.back()) == 1, "axis {} is listed twice",
                axis);
    }
    return result;
}

// The length of x[start:end:step] where some of the numbers are not known.
Dim sliced_dim(const Dim& extent, const std::optional<int64_t>& start, const std::optional<int64_t>& end,
               const std::optional<int64_t>& step, const Dim& symbolic_end) {
    if (extent.known() && start && end && step) return Dim(cut(*start, *end, *step, extent.value).count);
    if (start.value_or(-1) != 0 || step.value_or(0) != 1) return {};
    // x[0:inf] keeps a named dimension; x[0:seq] has length seq when the dimension is seq as well.
    if (end && *end >= std::numeric_limits<int32_t>::max()) return extent;
    if (!end && symbolic_end == extent) return extent;
    // A table of known length cut to seq: named, so that adding it to a tensor of length seq keeps that name.
    if (!end && !symbolic_end.symbol.empty() && extent.known() && extent.value > 1)
        return clamped_dim(symbolic_end, extent.value);
    return {};
}

void infer_data(InferContext& context) {
    const std::optional<Dims> data = context.shape_data(0);
    const auto starts = context.ints(1);
    const auto ends = context.ints(2);
    const auto steps = context.has_input(4) ? context.ints(4) : std::optional(std::vector<int64_t>{1});
    if (!data || context.rank(0) != 1 || !starts || !ends || !steps) return;
    if (starts->size() != 1 || ends->size() != 1 || steps->size() != 1) return;
    const Cut part = cut((*starts)[0], (*ends)[0], (*steps)[0], static_cast<int64_t>(data->size()));
    Dims result;
    for (int64_t i = 0; i < part.count; ++i)
        result.push_back((*data)[static_cast<size_t>(part.start + i * part.step)]);
    context.set_shape_data(0, std::move(result));
}

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    const std::optional<Dims> starts = context.shape_data(1);
    const std::optional<Dims> ends = context.shape_data(2);
    const auto axes = context.has_input(3) ? context.ints(3) : std::nullopt;
    const std::optional<Dims> steps = context.has_input(4) ? context.shape_data(4) : std::nullopt;
    if (!x) return context.set_output(0, context.dtype(0));
    Dims shape = *x;
    if ((context.has_input(3) && !axes) || !starts || !ends) {
        // Without the axes every dimension may change, with them only those.
        if (!axes)
            shape.assign(x->size(), Dim());
        else
            for (const size_t axis : axes_or_default(axes, axes->size(), context.rank(0)))
                shape[axis] = Dim();
        return context.set_output(0, context.dtype(0), std::move(shape));
    }
    const size_t count = starts->size();
    require(ends->size() == count && (!axes || axes->size() == count) && (!steps || steps->size() == count),
            "starts, ends, axes and steps have different lengths");
    const std::vector<size_t> where = axes_or_default(axes, count, context.rank(0));
    for (size_t i = 0; i < count; ++i) {
        std::optional<int64_t> step = 1;
        if (context.has_input(4)) step = steps ? entry_number((*steps)[i]) : std::nullopt;
        shape[where[i]] = sliced_dim((*x)[where[i]], entry_number((*starts)[i]), entry_number((*ends)[i]),
                                     step, (*ends)[i]);
    }
    context.set_output(0, context.dtype(0), std::move(shape));
    infer_data(context);
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const std::vector<int64_t> starts = context.input(1).to_ints();
    const std::vector<int64_t> ends = context.input(2).to_ints();
    const size_t count = starts.size();
    std::optional<std::vector<int64_t>> axes;
    if (context.has_input(3)) axes = context.input(3).to_ints();
    const std::vector<int64_t> steps =
        context.has_input(4) ? context.input(4).to_ints() : std::vector<int64_t>(count, 1);
    require(ends.size() == count && (!axes || axes->size() == count) && steps.size() == count,
            "starts, ends, axes and steps have different lengths");
    const std::vector<size_t> where = axes_or_default(axes, count, x.rank());
    Shape shape = x.shape();
    const Shape strides = row_major_strides(x.shape());
    Shape walk = strides;
    int64_t offset = 0;
    for (size_t i = 0; i < count; ++i) {
        const Cut part = cut(starts[i], ends[i], steps[i], x.shape()[where[i]]);
        shape[where[i]] = part.count;
        if (part.count == 0) continue;
        offset += part.start * strides[where[i]];
        walk[where[i]] = part.count == 1 ? 0 : part.step * strides[where[i]];
    }
    ElementMove move(context, {x});
    std::byte* y = move.target(0, shape);
    if (element_count(shape) > 0)
        copy_block(shape, move.width(), move.source() + offset * static_cast<int64_t>(move.width()), walk, y,
                   row_major_strides(shape));
    move.finish();
}

KILTER_OP({.name = "Slice", .min_inputs = 3, .max_inputs = 5, .infer = infer, .kernel = kernel});

}  // namespace kilter::slice_op
