// kilter.Attention: softmax(scale * q·kᵀ + mask)·v over [batch, heads, sequence, features].
#include <cmath>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/numeric.h"
#include "ops/product.h"

namespace kilter::fused_attention_op {

Dims attention_dims(const Attributes& attributes, const Dims& q, const Dims& k, const Dims& v,
                    const std::optional<Dims>& mask) {
    require(q.size() == 4 && k.size() == 4 && v.size() == 4,
            "q, k and v must have rank 4, found {}, {} and {}", to_string(q), to_string(k), to_string(v));
    const bool k_transposed = attributes.get_int("k_transposed") != 0;
    const Dims scores = product_dims(q, k_transposed ? k : transposed_dims(k, "k"));
    if (mask) {
        broadcast(*mask, scores);
        require(mask->size() <= 4, "the mask {} does not broadcast to the scores {}", to_string(*mask),
                to_string(scores));
    }
    return product_dims(scores, v);
}

void infer(InferContext& context) {
    require_same_dtype(context.dtype(0), context.dtype(1), "k");
    require_same_dtype(context.dtype(0), context.dtype(2), "v");
    if (!context.shape(0) || !context.shape(1) || !context.shape(2))
        return context.set_output(0, context.dtype(0));
    context.set_output(0, context.dtype(0),
                       attention_dims(context.attributes(), *context.shape(0), *context.shape(1),
                                      *context.shape(2), context.shape(3)));
}

void kernel(KernelContext& context) {
    const Tensor& q = needed(context, 0, "q");
    require_real(q.dtype(), "q");
    Tensor k = to_reals(needed(context, 1, "k"));
    const Tensor v = to_reals(needed(context, 2, "v"));
    attention_dims(context.attributes(), to_dims(q.shape()), to_dims(k.shape()), to_dims(v.shape()),
                   optional_dims(context, 3));
    if (context.attributes().get_int("k_transposed") == 0) k = transposed(k, "k");
    Tensor scores = product(to_reals(q), k);
    const std::span<double> values = scores.as_mutable<double>();
    const double scale = context.attributes().get_float("scale", 1.0F);
    for (double& value : values) value *= scale;
    if (context.has_input(3)) {
        const Tensor mask = to_reals(context.input(3));
        BroadcastIndex index(mask.shape(), scores.shape());
        for (double& value : values) {
            value += mask.as<double>()[static_cast<size_t>(index.offset())];
            index.next();
        }
    }
    const auto count = static_cast<size_t>(scores.dim(-1));
    for (size_t row = 0; row < values.size(); row += count) {
        const std::span<double> line = values.subspan(row, count);
        const double largest = *std::ranges::max_element(line);
        double sum = 0;
        for (double& value : line) sum += value = std::exp(value - largest);
        for (double& value : line) value /= sum;
    }
    store_reals(context, 0, q.dtype(), product(scores, v));
}

KILTER_OP({.name = "Attention",
           .domain = kKilterDomain,
           .min_inputs = 3,
           .max_inputs = 4,
           .attributes = {{"scale", AttributeKind::real}, {"k_transposed", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::fused_attention_op
