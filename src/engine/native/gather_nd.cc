// GatherND and ScatterND: the last dimension of the indices is a position in the data; runs behind it move as they are.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/fail.h"
#include "engine/native/elementwise.h"
#include "engine/native/indices.h"
#include "engine/native/loop.h"
#include "ops/broadcast.h"

namespace kilter::engine {
namespace {

struct Positions {
    Shape sizes, strides;  // of the axes that the indices speak of
    int64_t depth = 0;
    int64_t slices = 1;
    int64_t slices_per_batch = 1, batch_stride = 0;
    size_t width = 1;
    size_t run = 1;  // bytes

    //! Byte offset in the data, or -1.
    int64_t offset(const Indices& indices, int64_t slice) const {
        int64_t at = slice / slices_per_batch * batch_stride;
        for (int64_t k = 0; k < depth; ++k) {
            const int64_t index = indices.get(slice * depth + k, sizes[static_cast<size_t>(k)]);
            if (index < 0) return -1;
            at += index * strides[static_cast<size_t>(k)];
        }
        return at * static_cast<int64_t>(width);
    }
};

Positions positions(const Shape& data, const Shape& indices, size_t batch, DType dtype) {
    const std::span<const int64_t> shape(data);
    Positions found;
    found.depth = indices.back();
    const size_t consumed = batch + static_cast<size_t>(found.depth);
    const Shape strides = row_major_strides(data);
    found.sizes.assign(shape.begin() + static_cast<std::ptrdiff_t>(batch),
                       shape.begin() + static_cast<std::ptrdiff_t>(consumed));
    found.strides.assign(strides.begin() + static_cast<std::ptrdiff_t>(batch),
                         strides.begin() + static_cast<std::ptrdiff_t>(consumed));
    found.slices = element_count(std::span(indices).first(indices.size() - 1));
    found.slices_per_batch = found.slices / element_count(shape.first(batch));
    found.batch_stride = element_count(shape.subspan(batch));
    found.width = byte_count(dtype, 1);
    found.run = byte_count(dtype, element_count(shape.subspan(consumed)));
    return found;
}

bool build_gather(Builder& builder, const Node& node) {
    const Value* data = node.input(0);
    const DType index_type = builder.dtype(node.input(1));
    if (!is_index_type(index_type) || bits(builder.dtype(data)) < 8) return false;
    const auto batch = static_cast<size_t>(node.attributes.get_int("batch_dims"));
    const Shape& shape = builder.shape(data);
    const Shape& index_shape = builder.shape(node.input(1));
    if (!std::equal(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(batch), index_shape.begin()))
        return false;
    const Positions where =
        positions(builder.shape(data), builder.shape(node.input(1)), batch, builder.dtype(data));
    const Array source = builder.dense(data);
    const Array index = builder.dense(node.input(1));
    const Array result = builder.dense_result(node.output(0));
    const std::string name = describe(node);
    builder.add_native("native", {source, index}, {result}, [=](Execution& execution) {
        const Indices indices(index_type, execution.address(index));
        const char* from = execution.address(source);
        char* to = execution.address(result);
        std::atomic<bool> inside{true};
        const int threads = threads_for(where.slices * static_cast<int64_t>(where.run / where.width));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int64_t slice = 0; slice < where.slices; ++slice) {
            const int64_t offset = where.offset(indices, slice);
            if (offset < 0)
                inside = false;
            else
                std::memcpy(to + static_cast<size_t>(slice) * where.run, from + offset, where.run);
        }
        require(inside, "{}: an index is outside the data", name);
    });
    return true;
}

bool build_scatter(Builder& builder, const Node& node) {
    const Value* data = node.input(0);
    const DType index_type = builder.dtype(node.input(1));
    if (!is_index_type(index_type) || bits(builder.dtype(data)) < 8) return false;
    if (node.attributes.get_string("reduction", "none") != "none") return false;
    const Shape& shape = builder.shape(data);
    const Shape& index_shape = builder.shape(node.input(1));
    if (index_shape.empty() || index_shape.back() > static_cast<int64_t>(shape.size())) return false;
    Shape expected(index_shape.begin(), index_shape.end() - 1);
    expected.insert(expected.end(), shape.begin() + index_shape.back(), shape.end());
    if (builder.shape(node.input(2)) != expected || builder.dtype(node.input(2)) != builder.dtype(data))
        return false;
    const Positions where =
        positions(builder.shape(data), builder.shape(node.input(1)), 0, builder.dtype(data));
    const Array source = builder.dense(data);
    const Array index = builder.dense(node.input(1));
    const Array updates = builder.dense(node.input(2));
    const bool apart = updates.buffer != source.buffer && index.buffer != source.buffer;
    const Array result =
        apart ? elementwise_result(builder, node.output(0), {source}) : builder.dense_result(node.output(0));
    const std::string name = describe(node);
    const size_t bytes = byte_count(source.dtype, element_count(source.shape));
    builder.add_native("native", {source, index, updates}, {result}, [=](Execution& execution) {
        const Indices indices(index_type, execution.address(index));
        const char* from = execution.address(updates);
        char* to = execution.address(result);
        if (to != execution.address(source)) std::memcpy(to, execution.address(source), bytes);
        // In order: of updates to one place the last one stays.
        for (int64_t slice = 0; slice < where.slices; ++slice) {
            const int64_t offset = where.offset(indices, slice);
            require(offset >= 0, "{}: an index is outside the data", name);
            std::memcpy(to + offset, from + static_cast<size_t>(slice) * where.run, where.run);
        }
    });
    return true;
}

KILTER_KERNEL("GatherND", build_gather);
KILTER_KERNEL("ScatterND", build_scatter);

}  // namespace
}  // namespace kilter::engine
