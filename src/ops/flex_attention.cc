// FlexAttention: scaled dot products whose scores and probabilities pass through sub-graphs of the model.
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "graph/onnx_dtype.h"
#include "ops/attention.h"
#include "ops/numeric.h"
#include "ops/product.h"

namespace kilter::flex_attention_op {

constexpr std::string_view kDomain = "ai.onnx.preview";

// The type that the sub-graphs see: as asked for, else at least f32.
DType score_dtype(const Attributes& attributes, DType q) {
    if (attributes.has("softmax_precision")) return dtype_from_onnx(attributes.get_int("softmax_precision"));
    return q == DType::f64 || q == DType::undefined ? q : DType::f32;
}

void check_shapes(const Dims& q, const Dims& k, const Dims& v) {
    require(q.size() == 4 && k.size() == 4 && v.size() == 4,
            "Q, K and V must have rank 4, found {}, {} and {}", to_string(q), to_string(k), to_string(v));
    require(
        agree(q[0], k[0]) && agree(q[0], v[0]) && agree(k[1], v[1]) && agree(k[2], v[2]) && agree(q[3], k[3]),
        "Q {}, K {} and V {} do not fit together", to_string(q), to_string(k), to_string(v));
    if (q[1].known() && k[1].known())
        require(k[1].value > 0 && q[1].value % k[1].value == 0, "{} query heads cannot share {} key heads",
                q[1].value, k[1].value);
}

void infer(InferContext& context) {
    require_same_dtype(context.dtype(0), context.dtype(1), "K");
    context.set_output(0, context.dtype(2));
    if (!context.shape(0) || !context.shape(1) || !context.shape(2)) return;
    const Dims& q = *context.shape(0);
    const Dims& k = *context.shape(1);
    const Dims& v = *context.shape(2);
    check_shapes(q, k, v);
    const ValueType scores(score_dtype(context.attributes(), context.dtype(0)), {q[0], q[1], q[2], k[2]});
    for (const char* name : {"score_mod", "prob_mod"})
        if (context.attributes().has(name))
            context.infer_subgraph(*context.attributes().get_graph(name), {scores});
    context.set_output(0, context.dtype(2), {q[0], q[1], q[2], v[3]});
}

Tensor modified(KernelContext& context, std::string_view name, DType dtype, const Tensor& scores) {
    if (!context.attributes().has(name)) return scores;
    const std::vector<Tensor> results =
        context.run_subgraph(*context.attributes().get_graph(name), {convert(scores, dtype)});
    require(results.size() == 1 && results[0].shape() == scores.shape(),
            "{} must give one tensor of shape {}", name, to_string(scores.shape()));
    return to_reals(results[0]).clone();
}

void softmax_rows(Tensor& scores) {
    const auto count = static_cast<size_t>(scores.dim(-1));
    const std::span<double> values = scores.as_mutable<double>();
    for (size_t row = 0; row < values.size(); row += count) {
        const std::span<double> line = values.subspan(row, count);
        const double largest = *std::ranges::max_element(line);
        double sum = 0;
        for (double& value : line) sum += value = std::exp(value - largest);
        for (double& value : line) value /= sum;
    }
}

void kernel(KernelContext& context) {
    const Tensor& q = needed(context, 0, "Q");
    const Tensor& k = needed(context, 1, "K");
    const Tensor& v = needed(context, 2, "V");
    require_real(q.dtype(), "Q");
    require_same_dtype(q.dtype(), k.dtype(), "K");
    require_real(v.dtype(), "V");
    check_shapes(to_dims(q.shape()), to_dims(k.shape()), to_dims(v.shape()));
    const DType dtype = score_dtype(context.attributes(), q.dtype());
    require_real(dtype, "softmax_precision");
    const double scale = context.attributes().has("scale") ? context.attributes().get_float("scale")
                                                           : 1.0 / std::sqrt(static_cast<double>(q.dim(3)));
    Tensor scores = product(to_reals(q), transposed(shared_heads(to_reals(k), q.dim(1)), "K"));
    for (double& value : scores.as_mutable<double>()) value *= scale;
    scores = modified(context, "score_mod", dtype, scores);
    softmax_rows(scores);
    scores = modified(context, "prob_mod", dtype, scores);
    store_reals(context, 0, v.dtype(), product(scores, shared_heads(to_reals(v), q.dim(1))));
}

KILTER_OP({.name = "FlexAttention",
           .domain = kDomain,
           .min_inputs = 3,
           .max_inputs = 3,
           .attributes = {{"scale", AttributeKind::real},
                          {"softmax_precision", AttributeKind::integer},
                          {"score_mod", AttributeKind::graph},
                          {"prob_mod", AttributeKind::graph}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::flex_attention_op
