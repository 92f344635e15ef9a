// GatherND: the last dimension of the indices is a position in the data; `batch_dims` leading dimensions
// go in step.
#include <cstring>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"

namespace kilter::gather_nd_op {

template <class Dimension>
std::vector<Dimension> gathered(const std::vector<Dimension>& data, const std::vector<Dimension>& indices,
                                size_t consumed) {
    std::vector<Dimension> shape(indices.begin(), indices.end() - 1);
    shape.insert(shape.end(), data.begin() + static_cast<std::ptrdiff_t>(consumed), data.end());
    return shape;
}

size_t batch_dims(const Attributes& attributes, size_t data_rank, size_t index_rank) {
    const int64_t batch = attributes.get_int("batch_dims", 0);
    require(data_rank > 0 && index_rank > 0, "data and indices must have at least one dimension");
    require(batch >= 0 && static_cast<size_t>(batch) < std::min(data_rank, index_rank),
            "batch_dims {} does not fit data of rank {} and indices of rank {}", batch, data_rank,
            index_rank);
    return static_cast<size_t>(batch);
}

void check_depth(int64_t depth, size_t batch, size_t rank) {
    require(depth >= 0 && static_cast<size_t>(depth) + batch <= rank,
            "indices of {} coordinates are too long for data of rank {}", depth, rank);
}

void infer(InferContext& context) {
    const std::optional<Dims>& data = context.shape(0);
    const std::optional<Dims>& indices = context.shape(1);
    if (!data || !indices) return context.set_output(0, context.dtype(0));
    const size_t batch = batch_dims(context.attributes(), data->size(), indices->size());
    const Dim& depth = indices->back();
    if (!depth.known()) return context.set_output(0, context.dtype(0));
    check_depth(depth.value, batch, data->size());
    context.set_output(0, context.dtype(0),
                       gathered<Dim>(*data, *indices, batch + static_cast<size_t>(depth.value)));
}

void kernel(KernelContext& context) {
    const Tensor& data = context.input(0);
    const Tensor& indices = context.input(1);
    const size_t batch = batch_dims(context.attributes(), data.shape().size(), indices.shape().size());
    const int64_t depth = indices.shape().back();
    check_depth(depth, batch, data.shape().size());
    const std::span<const int64_t> shape(data.shape());
    const size_t consumed = batch + static_cast<size_t>(depth);
    const Shape strides = row_major_strides(data.shape());
    for (size_t i = 0; i < batch; ++i)
        require(shape[i] == indices.shape()[i], "batch dimension {} is {} in the data but {} in the indices",
                i, shape[i], indices.shape()[i]);
    const int64_t batches = element_count(shape.first(batch));
    const int64_t batch_stride = element_count(shape.subspan(batch));
    const std::vector<int64_t> coordinates = indices.to_ints();
    ElementMove move(context, {data});
    const size_t run = static_cast<size_t>(element_count(shape.subspan(consumed))) * move.width();
    std::byte* y = move.target(0, gathered<int64_t>(data.shape(), indices.shape(), consumed));
    const int64_t slices = element_count(std::span(indices.shape()).first(indices.shape().size() - 1));
    for (int64_t slice = 0; slice < slices && run > 0; ++slice, y += run) {
        int64_t offset = slice / (slices / batches) * batch_stride;
        for (int64_t k = 0; k < depth; ++k) {
            const int64_t index = coordinates[static_cast<size_t>(slice * depth + k)];
            const size_t axis = batch + static_cast<size_t>(k);
            require(index >= -shape[axis] && index < shape[axis],
                    "index {} is out of range for a dimension of {}", index, shape[axis]);
            offset += (index < 0 ? index + shape[axis] : index) * strides[axis];
        }
        std::memcpy(y, move.source() + static_cast<size_t>(offset) * move.width(), run);
    }
    move.finish();
}

KILTER_OP({.name = "GatherND",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"batch_dims", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::gather_nd_op
