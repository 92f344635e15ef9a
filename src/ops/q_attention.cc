// kilter.QAttention: attention over 8-bit heads. Scores are exact integers scaled to float32; the softmax is rounded to u8 in
// steps of 1/255; its product with v is exact again. Inputs: q (u8 or i8), k and v (i8), mask (f32, optional).
#include <cmath>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/integer_result.h"
#include "ops/numeric.h"
#include "ops/product.h"

namespace kilter::q_attention_op {

void infer(InferContext& context) {
    const DType dtype = result_type(context.attributes()).dtype;
    if (!context.shape(0) || !context.shape(1) || !context.shape(2)) return context.set_output(0, dtype);
    require(context.rank(0) == 4 && context.rank(1) == 4 && context.rank(2) == 4,
            "q, k and v must have rank 4, found {}, {} and {}", to_string(*context.shape(0)),
            to_string(*context.shape(1)), to_string(*context.shape(2)));
    const bool k_transposed = context.attributes().get_int("k_transposed") != 0;
    const Dims scores = product_dims(
        *context.shape(0), k_transposed ? *context.shape(1) : transposed_dims(*context.shape(1), "k"));
    if (context.shape(3)) broadcast(*context.shape(3), scores);
    context.set_output(0, dtype, product_dims(scores, *context.shape(2)));
}

void kernel(KernelContext& context) {
    const Attributes& attributes = context.attributes();
    const Tensor q = centered_reals(needed(context, 0, "q"), attributes.get_int("q_zero_point"), "q");
    Tensor k = centered_reals(needed(context, 1, "k"), 0, "k");
    const Tensor v = centered_reals(needed(context, 2, "v"), 0, "v");
    if (attributes.get_int("k_transposed") == 0) k = transposed(k, "k");
    Tensor scores = product(q, k);
    const std::span<double> values = scores.as_mutable<double>();
    const float qk = attributes.get_float("q_scale", 1.0F) * attributes.get_float("k_scale", 1.0F);
    const float scale = qk * attributes.get_float("scale", 1.0F);
    const Tensor mask = context.has_input(3) ? to_reals(context.input(3)) : Tensor();
    BroadcastIndex index(mask.empty() ? Shape{} : mask.shape(), scores.shape());
    for (double& value : values) {
        float t = static_cast<float>(value) * scale;
        if (!mask.empty()) t += static_cast<float>(mask.as<double>()[static_cast<size_t>(index.offset())]);
        value = t;
        index.next();
    }
    const auto count = static_cast<size_t>(scores.dim(-1));
    for (size_t row = 0; row < values.size(); row += count) {
        const std::span<double> line = values.subspan(row, count);
        const double largest = *std::ranges::max_element(line);
        double sum = 0;
        for (double& value : line) sum += value = std::exp(value - largest);
        for (double& value : line) value = std::nearbyint(value / sum * 255.0);
    }
    FloatTail tail;
    tail.scales = {attributes.get_float("v_scale", 1.0F) * (1.0F / 255.0F)};
    store_result(context, product(scores, v), 3, tail);
}

KILTER_OP({.name = "QAttention",
           .domain = kKilterDomain,
           .min_inputs = 3,
           .max_inputs = 4,
           .attributes = with_result_attributes({{"scale", AttributeKind::real},
                                                 {"k_transposed", AttributeKind::integer},
                                                 {"q_scale", AttributeKind::real},
                                                 {"q_zero_point", AttributeKind::integer},
                                                 {"k_scale", AttributeKind::real},
                                                 {"v_scale", AttributeKind::real}}),
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::q_attention_op
