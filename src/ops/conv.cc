// Conv and ConvTranspose, and kilter.Conv and kilter.ConvTranspose: the same with post-ops.
#include "ops/convolution.h"
#include "ops/numeric.h"
#include "ops/post_ops.h"

namespace kilter::conv_op {

// `Dims` says the shape of the result, `Compute` its values.
template <auto Dims>
void infer(InferContext& context) {
    require_same_dtype(context.dtype(0), context.dtype(1), "the weights");
    if (!context.shape(0) || !context.shape(1)) return context.set_output(0, context.dtype(0));
    context.set_output(0, context.dtype(0),
                       Dims(context.attributes(), *context.shape(0), *context.shape(1), context.shape(2)));
}

template <auto Compute>
Tensor& compute(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const Tensor& weights = needed(context, 1, "the weights");
    require_real(x.dtype(), "the input");
    require_same_dtype(x.dtype(), weights.dtype(), "the weights");
    const Tensor bias = context.has_input(2) ? to_reals(context.input(2)) : Tensor();
    return store_reals(context, 0, x.dtype(),
                       Compute(context.attributes(), to_reals(x), to_reals(weights), bias));
}

template <auto Compute>
void kernel(KernelContext& context) {
    compute<Compute>(context);
}

template <auto Dims>
void fused_infer(InferContext& context) {
    post_ops(context.node());
    infer<Dims>(context);
}

template <auto Compute>
void fused_kernel(KernelContext& context) {
    const std::vector<PostOp> ops = post_ops(context.node());
    apply_post_ops(ops, compute<Compute>(context), all_inputs(context));
}

using Specs = std::vector<AttributeSpec>;

Specs joined(Specs specs, const Specs& more) {
    specs.insert(specs.end(), more.begin(), more.end());
    return specs;
}

const Specs kConv = {{"auto_pad", AttributeKind::text}, {"dilations", AttributeKind::integers},
                     {"group", AttributeKind::integer}, {"kernel_shape", AttributeKind::integers},
                     {"pads", AttributeKind::integers}, {"strides", AttributeKind::integers}};
const Specs kTransposed =
    joined(kConv, {{"output_padding", AttributeKind::integers}, {"output_shape", AttributeKind::integers}});
const Specs kFused = {{"post_ops", AttributeKind::texts},
                      {"post_alphas", AttributeKind::reals},
                      {"post_betas", AttributeKind::reals}};

KILTER_OP({.name = "Conv",
           .min_inputs = 2,
           .max_inputs = 3,
           .attributes = kConv,
           .infer = infer<conv_dims>,
           .kernel = kernel<conv>});

KILTER_OP({.name = "Conv",
           .domain = kKilterDomain,
           .min_inputs = 2,
           .max_inputs = kVariadic,
           .attributes = joined(kConv, kFused),
           .infer = fused_infer<conv_dims>,
           .kernel = fused_kernel<conv>});

KILTER_OP({.name = "ConvTranspose",
           .min_inputs = 2,
           .max_inputs = 3,
           .attributes = kTransposed,
           .infer = infer<conv_transpose_dims>,
           .kernel = kernel<conv_transpose>});

KILTER_OP({.name = "ConvTranspose",
           .domain = kKilterDomain,
           .min_inputs = 2,
           .max_inputs = kVariadic,
           .attributes = joined(kTransposed, kFused),
           .infer = fused_infer<conv_transpose_dims>,
           .kernel = fused_kernel<conv_transpose>});

}  // namespace kilter::conv_op
