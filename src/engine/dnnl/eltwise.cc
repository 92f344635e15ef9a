// Unary element-wise operators in whatever layout their input has, in place when it dies here.
#include <algorithm>

#include "engine/builder.h"
#include "engine/dnnl/post_ops.h"

namespace kilter::engine {
namespace {

std::optional<float> scalar(const Builder& builder, const Value* value, float absent) {
    if (value == nullptr) return absent;
    const Tensor* tensor = builder.constant(value);
    if (tensor == nullptr || tensor->size() != 1) return std::nullopt;
    return static_cast<float>(tensor->to_doubles()[0]);
}

std::optional<PostOp> as_post_op(const Builder& builder, const Node& node) {
    const Attributes& attributes = node.attributes;
    const auto simple = [](const char* name, float alpha = 0, float beta = 0) {
        return PostOp{name, alpha, beta, -1};
    };
    if (node.op() == "Relu") return simple("relu");
    if (node.op() == "LeakyRelu") return simple("leaky_relu", attributes.get_float("alpha", 0.01F));
    if (node.op() == "Sigmoid") return simple("sigmoid");
    if (node.op() == "Tanh") return simple("tanh");
    if (node.op() == "Gelu")
        return simple(attributes.get_string("approximate", "none") == "tanh" ? "gelu_tanh" : "gelu_erf");
    if (node.op() == "Swish") return simple("swish", attributes.get_float("alpha", 1.0F));
    if (node.op() == "HardSwish") return simple("hard_swish");
    if (node.op() == "HardSigmoid")
        return simple("hard_sigmoid", attributes.get_float("alpha", 0.2F),
                      attributes.get_float("beta", 0.5F));
    if (node.op() == "Elu") return simple("elu", attributes.get_float("alpha", 1.0F));
    if (node.op() == "Softplus") return simple("softplus");
    if (node.op() == "Mish") return simple("mish");
    if (node.op() == "Exp") return simple("exp");
    if (node.op() == "Abs") return simple("abs");
    if (node.op() == "Sqrt") return simple("sqrt");
    if (node.op() == "Neg") return simple("linear", -1.0F);
    if (node.op() == "Clip") {
        const auto low = scalar(builder, node.input(1), -3.402823466e38F);
        const auto high = scalar(builder, node.input(2), 3.402823466e38F);
        if (!low || !high) return std::nullopt;
        return simple("clip", std::min(*low, *high), *high);  // the upper bound has the last word
    }
    return std::nullopt;
}

bool build(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    if (builder.dtype(x) != DType::f32 || builder.shape(x).size() > 6) return false;
    const std::optional<PostOp> op = as_post_op(builder, node);
    if (!op) return false;
    const Array source = builder.any(x);
    const Value* y = node.output(0);
    if (builder.dies_here(source)) {
        builder.alias(y, source);
        add_eltwise(builder, *op, source, source);
    } else if (is_packed(source.desc)) {
        add_eltwise(builder, *op, source, builder.result(y, source.desc));
    } else {
        // A strided view: write the result without gaps.
        add_eltwise(builder, *op, builder.dense(x), builder.dense_result(y));
    }
    return true;
}

#define UNARY(name) KILTER_KERNEL(name, build)
UNARY("Relu");
UNARY("LeakyRelu");
UNARY("Sigmoid");
UNARY("Tanh");
UNARY("Gelu");
UNARY("Swish");
UNARY("HardSwish");
UNARY("HardSigmoid");
UNARY("Elu");
UNARY("Softplus");
UNARY("Mish");
UNARY("Exp");
UNARY("Abs");
UNARY("Sqrt");
UNARY("Neg");
UNARY("Clip");

}  // namespace
}  // namespace kilter::engine
