// GatherElements: each output element comes from the same place, but for its index along one axis.
#include <cstring>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"

namespace kilter::gather_elements_op {

void infer(InferContext& context) {
    ValueType type;
    type.dtype = context.dtype(0);
    type.shape = context.shape(1);
    require(context.rank(0) < 0 || context.rank(1) < 0 || context.rank(0) == context.rank(1),
            "data of rank {} and indices of rank {}", context.rank(0), context.rank(1));
    context.set_output(0, std::move(type));
}

void kernel(KernelContext& context) {
    const Tensor& data = context.input(0);
    const Tensor& indices = context.input(1);
    require(data.rank() == indices.rank() && data.rank() > 0, "data of rank {} and indices of rank {}",
            data.rank(), indices.rank());
    const auto axis =
        static_cast<size_t>(normalize_axis(context.attributes().get_int("axis", 0), data.rank()));
    for (size_t i = 0; i < data.shape().size(); ++i)
        require(i == axis || indices.shape()[i] <= data.shape()[i], "indices {} do not fit into data {}",
                to_string(indices.shape()), to_string(data.shape()));
    const Shape strides = row_major_strides(data.shape());
    const int64_t extent = data.shape()[axis];
    const std::vector<int64_t> chosen = indices.to_ints();
    ElementMove move(context, {data});
    std::byte* y = move.target(0, indices.shape());
    Shape position(strides.size(), 0);
    for (const int64_t index : chosen) {
        require(index >= -extent && index < extent, "index {} is out of range for a dimension of {}", index,
                extent);
        int64_t offset = (index < 0 ? index + extent : index) * strides[axis];
        for (size_t i = 0; i < position.size(); ++i)
            if (i != axis) offset += position[i] * strides[i];
        std::memcpy(y, move.source() + static_cast<size_t>(offset) * move.width(), move.width());
        y += move.width();
        for (size_t i = position.size(); i-- > 0;) {
            if (++position[i] < indices.shape()[i]) break;
            position[i] = 0;
        }
    }
    move.finish();
}

KILTER_OP({.name = "GatherElements",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"axis", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::gather_elements_op
