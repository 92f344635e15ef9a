// Conv, and kilter.Conv: the same with post-ops.
#include "ops/convolution.h"
#include "ops/numeric.h"
#include "ops/post_ops.h"

namespace kilter::conv_op {

void infer(InferContext& context) {
    require_same_dtype(context.dtype(0), context.dtype(1), "the weights");
    if (!context.shape(0) || !context.shape(1)) return context.set_output(0, context.dtype(0));
    context.set_output(
        0, context.dtype(0),
        conv_dims(context.attributes(), *context.shape(0), *context.shape(1), context.shape(2)));
}

Tensor& compute(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const Tensor& weights = needed(context, 1, "the weights");
    require_real(x.dtype(), "the input");
    require_same_dtype(x.dtype(), weights.dtype(), "the weights");
    const Tensor bias = context.has_input(2) ? to_reals(context.input(2)) : Tensor();
    return store_reals(context, 0, x.dtype(),
                       conv(context.attributes(), to_reals(x), to_reals(weights), bias));
}

void kernel(KernelContext& context) { compute(context); }

void fused_infer(InferContext& context) {
    post_ops(context.node());
    infer(context);
}

void fused_kernel(KernelContext& context) {
    const std::vector<PostOp> ops = post_ops(context.node());
    apply_post_ops(ops, compute(context), all_inputs(context));
}

KILTER_OP({.name = "Conv",
           .min_inputs = 2,
           .max_inputs = 3,
           .attributes = {{"auto_pad", AttributeKind::text},
                          {"dilations", AttributeKind::integers},
                          {"group", AttributeKind::integer},
                          {"kernel_shape", AttributeKind::integers},
                          {"pads", AttributeKind::integers},
                          {"strides", AttributeKind::integers}},
           .infer = infer,
           .kernel = kernel});

KILTER_OP({.name = "Conv",
           .domain = kKilterDomain,
           .min_inputs = 2,
           .max_inputs = kVariadic,
           .attributes = {{"auto_pad", AttributeKind::text},
                          {"dilations", AttributeKind::integers},
                          {"group", AttributeKind::integer},
                          {"kernel_shape", AttributeKind::integers},
                          {"pads", AttributeKind::integers},
                          {"strides", AttributeKind::integers},
                          {"post_ops", AttributeKind::texts},
                          {"post_alphas", AttributeKind::reals},
                          {"post_betas", AttributeKind::reals}},
           .infer = fused_infer,
           .kernel = fused_kernel});

}  // namespace kilter::conv_op
