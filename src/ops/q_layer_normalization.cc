// kilter.QLayerNormalization: LayerNormalization that also writes its result quantized.
// Outputs: the f32 result (optional), then the 8-bit one (y_scale, y_zero_point, y_dtype).
#include "base/convert.h"
#include "base/fail.h"
#include "ops/integer_result.h"
#include "ops/numeric.h"

namespace kilter::q_layer_normalization_op {

void infer(InferContext& context) {
    context.same_as_input();
    ValueType type = context.input(0);
    type.dtype = result_type(context.attributes()).dtype;
    context.set_output(1, std::move(type));
}

// LayerNormalization's own kernel, seen with its own operator.
class Normalization : public KernelContext {
  public:
    Normalization(const Node& node, KernelContext& outer) : KernelContext(node), outer_(outer) {}
    const Tensor& input(size_t index) const override { return outer_.input(index); }
    Tensor& output(size_t, DType dtype, const Shape& shape) override { return result = Tensor(dtype, shape); }
    void set_output(size_t, Tensor tensor) override { result = std::move(tensor); }
    std::vector<Tensor> run_subgraph(const Graph&, std::vector<Tensor>) override { return {}; }
    Tensor result;

  private:
    KernelContext& outer_;
};

void kernel(KernelContext& context) {
    Graph scratch;
    std::vector<Value*> inputs;
    for (size_t i = 0; i < context.input_count(); ++i)
        inputs.push_back(context.has_input(i) ? scratch.add_value() : nullptr);
    Attributes attributes;
    attributes.set("axis", context.attributes().get_int("axis", -1));
    attributes.set("epsilon", context.attributes().get_float("epsilon", 1e-5F));
    Normalization inner(*scratch.add_node("LayerNormalization", inputs, {scratch.add_value()}, attributes),
                        context);
    find_op("LayerNormalization")->kernel(inner);
    const ResultType type = result_type(context.attributes());
    const Tensor y = inner.result.converted(DType::f32);
    Tensor& quantized = context.output(1, type.dtype, y.shape());
    for (int64_t i = 0; i < y.size(); ++i)
        store_int(type.dtype, quantized.raw_mutable(), i,
                  requantize(y.as<float>()[static_cast<size_t>(i)], type));
    if (context.wants_output(0)) context.set_output(0, y);
}

KILTER_OP({.name = "QLayerNormalization",
           .domain = kKilterDomain,
           .min_inputs = 2,
           .max_inputs = 3,
           .min_outputs = 2,
           .max_outputs = 2,
           .attributes = with_result_attributes({{"axis", AttributeKind::integer},
                                                 {"epsilon", AttributeKind::real},
                                                 {"stash_type", AttributeKind::integer}}),
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::q_layer_normalization_op
