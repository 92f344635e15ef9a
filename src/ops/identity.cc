// Identity: the same tensor.
#include "ops/op.h"
#include "ops/shape_data.h"

namespace kilter::identity_op {

void infer(InferContext& context) {
    context.same_as_input();
    pass_shape_data(context);
}

void kernel(KernelContext& context) { context.set_output(0, context.input(0)); }

KILTER_OP({.name = "Identity", .infer = infer, .kernel = kernel, .tensors_only = false});

}  // namespace kilter::identity_op
