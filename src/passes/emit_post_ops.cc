#include "passes/emit_post_ops.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/fail.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

Attributes real(std::string_view name, float value) {
    Attributes attributes;
    attributes.set(name, value);
    return attributes;
}

Value* number(Graph& graph, double value, const Value* like, const std::string& stem) {
    const DType dtype = is_float(like) ? like->type.dtype : DType::f32;
    return graph.add_constant(Tensor::filled(dtype, {}, value), graph.fresh_name(stem + "/number"));
}

// 0.5 · x · (1 + erf(x / √2)): Gelu is an operator only since opset 20.
Value* gelu_erf(Graph& graph, Value* x, const std::string& stem) {
    Value* t = emit(graph, "Div", {x, number(graph, std::sqrt(2.0), x, stem)}, stem);
    t = emit(graph, "Erf", {t}, stem);
    t = emit(graph, "Add", {t, number(graph, 1, x, stem)}, stem);
    t = emit(graph, "Mul", {x, t}, stem);
    return emit(graph, "Mul", {t, number(graph, 0.5, x, stem)}, stem);
}

// 0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))
Value* gelu_tanh(Graph& graph, Value* x, const std::string& stem) {
    Value* cube = emit(graph, "Pow", {x, number(graph, 3, x, stem)}, stem);
    Value* t = emit(graph, "Mul", {cube, number(graph, 0.044715, x, stem)}, stem);
    t = emit(graph, "Add", {x, t}, stem);
    t = emit(graph, "Mul", {t, number(graph, std::sqrt(2.0 / M_PI), x, stem)}, stem);
    t = emit(graph, "Tanh", {t}, stem);
    t = emit(graph, "Add", {t, number(graph, 1, x, stem)}, stem);
    t = emit(graph, "Mul", {x, t}, stem);
    return emit(graph, "Mul", {t, number(graph, 0.5, x, stem)}, stem);
}

Value* swish(Graph& graph, Value* x, float alpha, const std::string& stem) {
    Value* t = alpha == 1.0F ? x : emit(graph, "Mul", {x, number(graph, alpha, x, stem)}, stem);
    return emit(graph, "Mul", {x, emit(graph, "Sigmoid", {t}, stem)}, stem);
}

// A limit that no number of the type passes is left out, as models do.
Value* clip(Graph& graph, Value* x, const PostOp& op, const std::string& stem) {
    const bool low = op.alpha > std::numeric_limits<float>::lowest();
    const bool high = op.beta < std::numeric_limits<float>::max();
    std::vector<Value*> inputs{x, low ? number(graph, op.alpha, x, stem) : nullptr};
    if (high) inputs.push_back(number(graph, op.beta, x, stem));
    return emit(graph, "Clip", inputs, stem);
}

Value* linear(Graph& graph, Value* x, const PostOp& op, const std::string& stem) {
    Value* t = op.alpha == 1.0F ? x : emit(graph, "Mul", {x, number(graph, op.alpha, x, stem)}, stem);
    if (op.beta == 0.0F && t != x) return t;
    return emit(graph, "Add", {t, number(graph, op.beta, x, stem)}, stem);
}

std::string_view binary_operator(std::string_view name) {
    if (name == "add") return "Add";
    if (name == "sub") return "Sub";
    if (name == "mul") return "Mul";
    if (name == "div") return "Div";
    return name == "max" ? "Max" : "Min";
}

}  // namespace

Value* emit(Graph& graph, std::string_view op, std::vector<Value*> inputs, const std::string& stem,
            Attributes attributes) {
    ValueType type = inputs.front()->type;
    const std::string name = fmt::format("{}/{}", stem, op);
    Value* result = graph.add(op, std::move(inputs), std::move(attributes), name);
    result->type = std::move(type);
    return result;
}

Value* emit_post_op(Graph& graph, const PostOp& op, Value* x, Value* operand, const std::string& stem) {
    if (op.is_binary()) return emit(graph, binary_operator(op.name), {x, operand}, stem);
    if (op.name == "relu") return emit(graph, "Relu", {x}, stem);
    if (op.name == "leaky_relu") return emit(graph, "LeakyRelu", {x}, stem, real("alpha", op.alpha));
    if (op.name == "clip") return clip(graph, x, op, stem);
    if (op.name == "sigmoid") return emit(graph, "Sigmoid", {x}, stem);
    if (op.name == "tanh") return emit(graph, "Tanh", {x}, stem);
    if (op.name == "gelu_erf") return gelu_erf(graph, x, stem);
    if (op.name == "gelu_tanh") return gelu_tanh(graph, x, stem);
    if (op.name == "swish") return swish(graph, x, op.alpha, stem);
    if (op.name == "hard_swish") {
        Attributes attributes = real("alpha", 1.0F / 6);
        attributes.set("beta", 0.5F);
        return emit(graph, "Mul", {x, emit(graph, "HardSigmoid", {x}, stem, std::move(attributes))}, stem);
    }
    if (op.name == "hard_sigmoid") {
        Attributes attributes = real("alpha", op.alpha);
        attributes.set("beta", op.beta);
        return emit(graph, "HardSigmoid", {x}, stem, std::move(attributes));
    }
    if (op.name == "elu") return emit(graph, "Elu", {x}, stem, real("alpha", op.alpha));
    if (op.name == "mish")
        return emit(graph, "Mul", {x, emit(graph, "Tanh", {emit(graph, "Softplus", {x}, stem)}, stem)}, stem);
    if (op.name == "exp") return emit(graph, "Exp", {x}, stem);
    if (op.name == "abs") return emit(graph, "Abs", {x}, stem);
    if (op.name == "sqrt") return emit(graph, "Sqrt", {x}, stem);
    if (op.name == "square") return emit(graph, "Mul", {x, x}, stem);
    if (op.name == "linear") return linear(graph, x, op, stem);
    fail("unknown post-op '{}'", op.name);
}

void split_post_ops(Graph& graph, Node& node, size_t from) {
    const std::vector<PostOp> ops = post_ops(node);
    if (from >= ops.size()) return;
    const std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    const std::string stem = node.name.empty() ? node.output()->name() : node.name;

    size_t operands = 0;
    std::vector<std::string> names;
    std::vector<float> alphas, betas;
    for (size_t i = 0; i < from; ++i) {
        operands += ops[i].is_binary() ? 1 : 0;
        names.push_back(ops[i].name);
        alphas.push_back(ops[i].alpha);
        betas.push_back(ops[i].beta);
    }
    if (names.empty()) {
        for (const std::string_view attribute : {"post_ops", "post_alphas", "post_betas"})
            node.attributes.erase(attribute);
    } else {
        node.attributes.set("post_ops", std::move(names));
        node.attributes.set("post_alphas", std::move(alphas));
        node.attributes.set("post_betas", std::move(betas));
    }
    std::vector<Value*> kept(inputs.begin(),
                             inputs.begin() + static_cast<int64_t>(std::min(inputs.size(), 3 + operands)));
    while (!kept.empty() && kept.back() == nullptr) kept.pop_back();
    graph.set_inputs(node, std::move(kept));

    Value* result = node.output();
    Value* x = graph.add_value(graph.fresh_name(result->name() + "/" + node.op()), result->type);
    graph.set_output(node, 0, x);
    for (size_t i = from; i < ops.size(); ++i)
        x = emit_post_op(graph, ops[i], x,
                         ops[i].is_binary() ? inputs[static_cast<size_t>(ops[i].operand)] : nullptr, stem);
    // The last operator makes the value under its old name.
    Node* last = x->producer();
    graph.set_output(*last, 0, nullptr);
    graph.remove_value(x);
    graph.set_output(*last, 0, result);
}

}  // namespace kilter
