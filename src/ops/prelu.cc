// PRelu: slope · x where x is negative; the slope broadcasts to x.
#include "base/fail.h"
#include "ops/elementwise.h"

namespace kilter::prelu_op {

void infer(InferContext& context) {
    ValueType type = context.input(0);
    type.dtype = common_dtype(context);
    context.set_output(0, std::move(type));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const BinaryFunction function{
        [](double value, double slope) { return value < 0 ? slope * value : value; },
        [](int64_t value, int64_t slope) {
            return value < 0
                       ? static_cast<int64_t>(static_cast<uint64_t>(slope) * static_cast<uint64_t>(value))
                       : value;
        },
        [](uint64_t value, uint64_t /*slope*/) { return value; }};
    map_binary(function, x, context.input(1), context.output(0, x.dtype(), x.shape()));
}

KILTER_OP({.name = "PRelu", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});

}  // namespace kilter::prelu_op
