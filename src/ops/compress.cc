// Compress: slices along an axis (or elements of the flattened tensor) where the condition holds.
#include <cstring>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/movement.h"

namespace kilter::compress_op {

void infer(InferContext& context) {
    if (!context.attributes().has("axis")) return context.set_output(0, context.dtype(0), {Dim()});
    if (!context.shape(0)) return context.set_output(0, context.dtype(0));
    Dims shape = *context.shape(0);
    require(!shape.empty(), "a scalar has no axis");
    shape[static_cast<size_t>(normalize_axis(context.attributes().get_int("axis"), context.rank(0)))] = Dim();
    context.set_output(0, context.dtype(0), std::move(shape));
}

void kernel(KernelContext& context) {
    const bool flat = !context.attributes().has("axis");
    const Tensor x = flat ? context.input(0).reshaped({context.input(0).size()}) : context.input(0);
    const Tensor& condition = context.input(1);
    require(x.rank() > 0, "a scalar has no axis");
    require(condition.dtype() == DType::boolean && condition.rank() == 1,
            "the condition must be a vector of bool");
    const size_t axis =
        flat ? 0 : static_cast<size_t>(normalize_axis(context.attributes().get_int("axis"), x.rank()));
    const int64_t extent = x.shape()[axis];
    require(condition.size() <= extent, "a condition of {} elements for a dimension of {}", condition.size(),
            extent);
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < condition.size(); ++i)
        if (load_int(DType::boolean, condition.raw(), i) != 0) chosen.push_back(i);
    Shape shape = x.shape();
    shape[axis] = static_cast<int64_t>(chosen.size());
    ElementMove move(context, {x});
    std::byte* y = move.target(0, shape);
    const size_t run =
        static_cast<size_t>(element_count(std::span(x.shape()).subspan(axis + 1))) * move.width();
    const int64_t outer = element_count(std::span(x.shape()).first(axis));
    for (int64_t i = 0; i < outer && run > 0; ++i) {
        for (const int64_t index : chosen) {
            std::memcpy(y, move.source() + static_cast<size_t>(i * extent + index) * run, run);
            y += run;
        }
    }
    move.finish();
}

KILTER_OP({.name = "Compress",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"axis", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::compress_op
