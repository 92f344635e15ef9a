// Dropout as inference sees it: the identity, and a mask that keeps everything.
#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::dropout_op {

void infer(InferContext& context) {
    context.same_as_input();
    ValueType mask;
    mask.dtype = DType::boolean;
    mask.shape = context.shape(0);
    context.set_output(1, std::move(mask));
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const bool training =
        context.has_input(2) && context.input(2).size() == 1 && context.input(2).to_ints()[0] != 0;
    const double ratio =
        context.has_input(1) && context.input(1).size() == 1 ? context.input(1).to_doubles()[0] : 0.5;
    require(!training || ratio == 0,
            "kilter runs inference only, but this Dropout is in training mode with ratio {}", ratio);
    context.set_output(0, x);
    if (context.wants_output(1)) context.set_output(1, Tensor::filled(DType::boolean, x.shape(), 1));
}

KILTER_OP({.name = "Dropout",
           .min_inputs = 1,
           .max_inputs = 3,
           .max_outputs = 2,
           .attributes = {{"seed", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::dropout_op
