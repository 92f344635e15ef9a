// CenterCropPad: crops or pads with zeros around the center to a given size along some axes.
#include <cstring>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"
#include "ops/shape_data.h"

namespace kilter::center_crop_pad_op {

std::vector<size_t> axes_of(const Attributes& attributes, size_t rank) {
    std::vector<size_t> axes;
    if (!attributes.has("axes"))
        for (size_t i = 0; i < rank; ++i) axes.push_back(i);
    for (const int64_t axis : attributes.get_ints("axes")) {
        require(rank > 0, "axis {} of a scalar", axis);
        axes.push_back(static_cast<size_t>(normalize_axis(axis, static_cast<int64_t>(rank))));
    }
    return axes;
}

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    const std::optional<Dims> target = context.shape_data(1);
    if (!x) return context.set_output(0, context.dtype(0));
    Dims shape = *x;
    const std::vector<size_t> axes = axes_of(context.attributes(), shape.size());
    require(!target || target->size() == axes.size(), "{} sizes for {} axes", target ? target->size() : 0,
            axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
        shape[axes[i]] = target ? (*target)[i] : Dim();
        require(!target || entry_number((*target)[i]).value_or(0) >= 0,
                "a dimension cannot be cropped to a negative size");
    }
    context.set_output(0, context.dtype(0), std::move(shape));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const std::vector<int64_t> target = context.input(1).to_ints();
    const std::vector<size_t> axes = axes_of(context.attributes(), x.shape().size());
    require(target.size() == axes.size(), "{} sizes for {} axes", target.size(), axes.size());
    Shape shape = x.shape();
    for (size_t i = 0; i < axes.size(); ++i) shape[axes[i]] = target[i];
    ElementMove move(context, {x});
    std::byte* y = move.target(0, shape);
    std::memset(y, 0, static_cast<size_t>(element_count(shape)) * move.width());
    // What both share is one block, placed in the middle of each.
    const Shape from_strides = row_major_strides(x.shape());
    const Shape to_strides = row_major_strides(shape);
    Shape extent;
    int64_t from = 0;
    int64_t to = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
        extent.push_back(std::min(shape[i], x.shape()[i]));
        from += (x.shape()[i] - extent[i]) / 2 * from_strides[i];
        to += (shape[i] - extent[i]) / 2 * to_strides[i];
    }
    const auto width = static_cast<int64_t>(move.width());
    if (element_count(extent) > 0)
        copy_block(extent, move.width(), move.source() + from * width, from_strides, y + to * width,
                   to_strides);
    move.finish();
}

KILTER_OP({.name = "CenterCropPad",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"axes", AttributeKind::integers}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::center_crop_pad_op
