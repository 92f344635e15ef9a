// Gather: picks slices along one axis; negative indices count from the back.
#include <cstring>

#include "base/fail.h"
#include "ops/movement.h"
#include "ops/shape_data.h"

namespace kilter::gather_op {

size_t axis_of(const Attributes& attributes, int64_t rank) {
    require(rank > 0, "the data to gather from is a scalar");
    return static_cast<size_t>(normalize_axis(attributes.get_int("axis", 0), rank));
}

template <class Dimension>
std::vector<Dimension> gathered(const std::vector<Dimension>& data, const std::vector<Dimension>& indices,
                                size_t axis) {
    std::vector<Dimension> shape(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(axis));
    shape.insert(shape.end(), indices.begin(), indices.end());
    shape.insert(shape.end(), data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
    return shape;
}

int64_t checked_index(int64_t index, int64_t extent) {
    require(index >= -extent && index < extent, "index {} is out of range for a dimension of {}", index,
            extent);
    return index < 0 ? index + extent : index;
}

void infer(InferContext& context) {
    const std::optional<Dims>& data = context.shape(0);
    const std::optional<Dims>& indices = context.shape(1);
    const DType index_type = context.dtype(1);
    require(index_type == DType::undefined || index_type == DType::i64 || index_type == DType::i32,
            "indices must be i32 or i64, not {}", name(index_type));
    if (!data || !indices) return context.set_output(0, context.dtype(0));
    const size_t axis = axis_of(context.attributes(), context.rank(0));
    context.set_output(0, context.dtype(0), gathered<Dim>(*data, *indices, axis));
    const std::optional<Dims> entries = context.shape_data(0);
    const std::optional<std::vector<int64_t>> chosen = context.ints(1);
    if (!entries || data->size() != 1 || !chosen || indices->size() > 1) return;
    Dims result;
    for (const int64_t index : *chosen)
        result.push_back(
            (*entries)[static_cast<size_t>(checked_index(index, static_cast<int64_t>(entries->size())))]);
    context.set_shape_data(0, std::move(result));
}

void kernel(KernelContext& context) {
    const Tensor& data = context.input(0);
    const Tensor& indices = context.input(1);
    const size_t axis = axis_of(context.attributes(), data.rank());
    const std::span<const int64_t> shape(data.shape());
    const int64_t outer = element_count(shape.first(axis));
    const int64_t extent = shape[axis];
    ElementMove move(context, {data});
    const size_t run = static_cast<size_t>(element_count(shape.subspan(axis + 1))) * move.width();
    std::vector<int64_t> chosen = indices.to_ints();
    for (int64_t& index : chosen) index = checked_index(index, extent);
    std::byte* y = move.target(0, gathered<int64_t>(data.shape(), indices.shape(), axis));
    for (int64_t i = 0; i < outer && run > 0; ++i) {
        for (const int64_t index : chosen) {
            std::memcpy(y, move.source() + static_cast<size_t>(i * extent + index) * run, run);
            y += run;
        }
    }
    move.finish();
}

KILTER_OP({.name = "Gather",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"axis", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::gather_op
