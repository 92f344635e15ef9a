// MaxUnpool: puts every element back where MaxPool found it; the rest is zero.
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/numeric.h"
#include "ops/shape_data.h"
#include "ops/window.h"

namespace kilter::max_unpool_op {

// The shape that the window implies; the indices refer to it even when output_shape asks for more room.
Dims unpooled_dims(const Attributes& attributes, const Dims& x) {
    require(x.size() >= 3 && x.size() <= 5, "the input must have 1 to 3 spatial axes, found shape {}",
            to_string(x));
    const Window window = read_window(attributes, pool_kernel(attributes, x.size() - 2));
    Dims result{x[0], x[1]};
    for (size_t axis = 0; axis < window.rank(); ++axis) {
        const Dim& input = x[axis + 2];
        if (!input.known()) {
            result.emplace_back();
            continue;
        }
        require(input.value <= kWindowLimit, "spatial axis {} has extent {}", axis, input.value);
        const int64_t extent = (input.value - 1) * window.strides[axis] + window.kernel[axis] -
                               window.pads_begin[axis] - window.pads_end[axis];
        require(extent >= 0, "pads leave nothing of spatial axis {}", axis);
        result.emplace_back(extent);
    }
    return result;
}

void infer(InferContext& context) {
    if (!context.shape(0)) return context.set_output(0, context.dtype(0));
    const Dims implied = unpooled_dims(context.attributes(), *context.shape(0));
    if (!context.has_input(2)) return context.set_output(0, context.dtype(0), implied);
    const std::optional<Dims> wanted = context.shape_data(2);
    for (const Dim& entry : wanted.value_or(Dims()))
        require(entry_number(entry).value_or(0) >= 0, "output_shape holds {}", to_string(entry));
    context.set_output(0, context.dtype(0),
                       wanted && wanted->size() == implied.size() ? *wanted : Dims(implied.size()));
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const std::vector<int64_t> places = needed(context, 1, "the indices").to_ints();
    require(context.input(1).shape() == x.shape(), "the indices {} must have the shape of the input {}",
            to_string(context.input(1).shape()), to_string(x.shape()));
    const Shape implied =
        ValueType(DType::f64, unpooled_dims(context.attributes(), to_dims(x.shape()))).static_shape();
    const Shape shape = context.has_input(2) ? Shape(context.input(2).to_ints()) : implied;
    require(shape.size() == implied.size(), "output_shape has {} entries for an input of rank {}",
            shape.size(), implied.size());
    Tensor y = real_zeros(shape);
    const Tensor values = to_reals(x);
    const int64_t room = element_count(implied);
    const Shape strides = row_major_strides(shape);
    for (size_t i = 0; i < places.size(); ++i) {
        require(places[i] >= 0 && places[i] < room, "index {} lies outside the {} elements of {}", places[i],
                room, to_string(implied));
        int64_t rest = places[i];
        int64_t target = 0;
        for (size_t axis = implied.size(); axis-- > 0; rest /= implied[axis]) {
            const int64_t coordinate = rest % implied[axis];
            require(coordinate < shape[axis], "index {} lies outside the output shape {}", places[i],
                    to_string(shape));
            target += coordinate * strides[axis];
        }
        y.as_mutable<double>()[static_cast<size_t>(target)] = values.as<double>()[i];
    }
    store_reals(context, 0, x.dtype(), y);
}

KILTER_OP({.name = "MaxUnpool",
           .min_inputs = 2,
           .max_inputs = 3,
           .attributes = {{"kernel_shape", AttributeKind::integers, true},
                          {"pads", AttributeKind::integers},
                          {"strides", AttributeKind::integers}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::max_unpool_op
