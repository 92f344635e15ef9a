// Unary element-wise operators in whatever layout their input has, in place when it dies here. Those that oneDNN computes
// otherwise than it should (NaN becomes a number, or digits are lost) are in native/unary.cc.
#include "engine/builder.h"
#include "engine/dnnl/post_ops.h"

namespace kilter::engine {
namespace {

PostOp as_post_op(const Node& node) {
    const Attributes& attributes = node.attributes;
    const auto simple = [](const char* name, float alpha = 0) { return PostOp{name, alpha, 0, -1}; };
    if (node.op() == "LeakyRelu") return simple("leaky_relu", attributes.get_float("alpha", 0.01F));
    if (node.op() == "Sigmoid") return simple("sigmoid");
    if (node.op() == "Tanh") return simple("tanh");
    if (node.op() == "Gelu")
        return simple(attributes.get_string("approximate", "none") == "tanh" ? "gelu_tanh" : "gelu_erf");
    if (node.op() == "Swish") return simple("swish", attributes.get_float("alpha", 1.0F));
    if (node.op() == "HardSwish") return simple("hard_swish");
    if (node.op() == "Abs") return simple("abs");
    if (node.op() == "Sqrt") return simple("sqrt");
    return simple("linear", -1.0F);  // Neg
}

bool build(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    if (builder.dtype(x) != DType::f32 || builder.shape(x).size() > 6) return false;
    const PostOp op = as_post_op(node);
    const Array source = builder.any(x);
    const Value* y = node.output(0);
    if (builder.dies_here(source)) {
        builder.alias(y, source);
        add_eltwise(builder, op, source, source);
    } else if (is_packed(source.desc)) {
        add_eltwise(builder, op, source, builder.result(y, source.desc));
    } else {
        // A strided view: write the result without gaps.
        add_eltwise(builder, op, builder.dense(x), builder.dense_result(y));
    }
    return true;
}

#define UNARY(name) KILTER_KERNEL(name, build)
UNARY("LeakyRelu");
UNARY("Sigmoid");
UNARY("Tanh");
UNARY("Gelu");
UNARY("Swish");
UNARY("HardSwish");
UNARY("Abs");
UNARY("Sqrt");
UNARY("Neg");

}  // namespace
}  // namespace kilter::engine
