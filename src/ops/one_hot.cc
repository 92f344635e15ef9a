// OneHot: a new axis of `depth` positions that holds the on value at each index and the off value elsewhere.
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/movement.h"

namespace kilter::one_hot_op {

size_t axis_of(const Attributes& attributes, int64_t rank) {
    return static_cast<size_t>(normalize_axis(attributes.get_int("axis", -1), rank + 1));
}

void infer(InferContext& context) {
    const std::optional<Dims>& indices = context.shape(0);
    const DType dtype = context.dtype(2);
    if (!indices) return context.set_output(0, dtype);
    Dim depth;
    if (const Tensor* constant = context.constant(1)) {
        require(constant->size() == 1, "depth must be one number, not {}", constant->size());
        const double number = constant->to_doubles()[0];
        require(number >= 0 && number < 1e15, "depth must not be {}", number);
        depth = static_cast<int64_t>(number);
    }
    Dims shape = *indices;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis_of(context.attributes(), context.rank(0))),
                 depth);
    context.set_output(0, dtype, std::move(shape));
}

void kernel(KernelContext& context) {
    const Tensor& indices = context.input(0);
    const Tensor& depth = context.input(1);
    const Tensor& values = context.input(2);
    require(depth.size() == 1, "depth must be one number, not {}", depth.size());
    require(values.size() == 2, "values must be the off and the on value, found {}", values.size());
    const double number = depth.to_doubles()[0];
    require(number >= 0 && number < 1e15, "depth must not be {}", number);
    const auto classes = static_cast<int64_t>(number);
    const size_t axis = axis_of(context.attributes(), indices.rank());
    Shape shape = indices.shape();
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), classes);
    const int64_t inner = element_count(std::span(indices.shape()).subspan(axis));
    ElementMove move(context, {values});
    std::byte* y = move.target(0, shape);
    copy_block({element_count(shape)}, move.width(), move.source(), {0}, y, {1});
    for (int64_t i = 0; i < indices.size(); ++i) {
        const double index = load_double(indices.dtype(), indices.raw(), i);
        const double hot = index < 0 ? index + number : index;
        if (!(hot >= 0 && hot < number)) continue;  // out of range: all off
        const int64_t at = (i / inner * classes + static_cast<int64_t>(hot)) * inner + i % inner;
        copy_block({}, move.width(), move.source() + move.width(), {},
                   y + static_cast<size_t>(at) * move.width(), {});
    }
    move.finish();
}

KILTER_OP({.name = "OneHot",
           .min_inputs = 3,
           .max_inputs = 3,
           .attributes = {{"axis", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::one_hot_op
