// Optional values: one that is there is the tensor or sequence itself, one that is not is Tensor::nothing().
#include "base/fail.h"
#include "ops/op.h"

namespace kilter::optional_op {

bool is_there(const KernelContext& context) {
    return context.has_input(0) && context.input(0).dtype() != DType::nothing;
}

void infer_same(InferContext& context) { context.same_as_input(); }

void wrap(KernelContext& context) {
    context.set_output(0, context.has_input(0) ? context.input(0) : Tensor::nothing());
}

void get(KernelContext& context) {
    require(is_there(context), "the optional value is absent");
    context.set_output(0, context.input(0));
}

void infer_has(InferContext& context) { context.set_output(0, DType::boolean, {}); }

void has(KernelContext& context) { context.set_output(0, Tensor::scalar(is_there(context))); }

KILTER_OP({.name = "Optional", .min_inputs = 0, .infer = infer_same, .kernel = wrap, .tensors_only = false});
KILTER_OP({.name = "OptionalGetElement", .infer = infer_same, .kernel = get, .tensors_only = false});
KILTER_OP({.name = "OptionalHasElement",
           .min_inputs = 0,
           .infer = infer_has,
           .kernel = has,
           .tensors_only = false});

}  // namespace kilter::optional_op
