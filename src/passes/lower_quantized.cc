// Operators between DequantizeLinear and QuantizeLinear become integer operators of kilter's own (src/ops/q_*.cc).
#include <algorithm>
#include <cmath>

#include "graph/onnx_dtype.h"
#include "ops/integer_result.h"
#include "passes/list.h"
#include "passes/quantization_parameters.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

void set_result(Attributes& attributes, const std::optional<QuantizationParameters>& parameters) {
    if (!parameters) return;
    attributes.set("y_scale", parameters->scale);
    attributes.set("y_zero_point", parameters->zero_point);
    attributes.set("y_dtype", onnx_code(parameters->dtype));
}

void set_post_ops(Attributes& attributes, const std::vector<PostOp>& ops) {
    std::vector<std::string> names;
    std::vector<float> alphas;
    std::vector<float> betas;
    for (const PostOp& op : ops) {
        names.push_back(op.name);
        alphas.push_back(op.alpha);
        betas.push_back(op.beta);
    }
    for (const std::string_view name : {"post_ops", "post_alphas", "post_betas"}) attributes.erase(name);
    if (ops.empty()) return;
    attributes.set("post_ops", names);
    attributes.set("post_alphas", alphas);
    attributes.set("post_betas", betas);
}

// A last Relu or Clip does nothing when saturation to the result's type does the same.
void drop_saturating_activation(std::vector<PostOp>& ops, const Attributes& attributes) {
    const ResultType type = result_type(attributes);
    if (type.dtype == DType::f32 || ops.empty()) return;
    const PostOp& last = ops.back();
    const int32_t low = type.dtype == DType::u8 ? 0 : -128;
    const bool relu = last.name == "relu" && requantize(0.0F, type) == low;
    const bool clip = last.name == "clip" && requantize(last.alpha, type) == low &&
                      requantize(last.beta, type) == low + 255;
    if (relu || clip) ops.pop_back();
}

// The new operator takes over the result, the name and the memory of the names it stands for.
void replace(Graph& graph, const Node& main, Value* result, std::string_view op, std::vector<Value*> inputs,
             Attributes attributes) {
    while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
    Value* y = graph.add(op, std::move(inputs), std::move(attributes), main.name, kKilterDomain);
    y->type = result->type;
    y->producer()->origins = main.origins;
    substitute(graph, result, y);
}

// What Conv and MatMul share: bias, operands and result. `inputs` holds the integer operands.
void replace_product(Graph& graph, Node& main, std::string_view op, std::vector<Value*> inputs,
                     Attributes attributes) {
    std::vector<PostOp> ops = main.domain().empty() ? std::vector<PostOp>{} : post_ops(main);
    const QuantizedResult result = quantized_result(graph, main.output());
    set_result(attributes, result.parameters);
    drop_saturating_activation(ops, attributes);
    inputs.push_back(main.input(2));
    std::vector<float> scales;
    std::vector<int64_t> zero_points;
    bool residual = false;
    for (const PostOp& post : ops) {
        if (!post.is_binary()) continue;
        Value* operand = main.input(static_cast<size_t>(post.operand));
        const auto integers = dequantized(graph, operand);
        // One operand of full size is read as it is stored, in the kernel's own sum; others are floats.
        const bool direct = integers && post.name == "add" && !residual && same_shape(operand, main.output());
        residual = residual || direct;
        inputs.push_back(direct ? integers->integers : operand);
        scales.push_back(direct ? integers->parameters.scale : 0.0F);
        zero_points.push_back(direct ? integers->parameters.zero_point : 0);
    }
    set_post_ops(attributes, ops);
    if (!scales.empty()) {
        attributes.set("operand_scales", scales);
        attributes.set("operand_zero_points", zero_points);
    }
    replace(graph, main, result.value, op, std::move(inputs), std::move(attributes));
}

bool has_float_bias(const Node& node) {
    return node.input(2) == nullptr || node.input(2)->type.dtype == DType::f32;
}

bool lower_conv(Graph& graph, Node& conv) {
    // Groups of a transposed convolution share the scales of its second axis: one for all is the common case.
    const bool transposed = conv.op() == "ConvTranspose";
    const auto x = dequantized(graph, conv.input(0));
    const auto weights = dequantized_weights(graph, conv.input(1), transposed ? 1 : 0);
    if (weights && transposed && weights->scales.size() > 1 && conv.attributes.get_int("group", 1) != 1)
        return false;
    if (!x || !weights || !has_float_bias(conv) || rank_of(conv.input(0)) < 3 || rank_of(conv.input(0)) > 5)
        return false;
    Attributes attributes = conv.attributes;
    attributes.set("x_scale", x->parameters.scale);
    attributes.set("x_zero_point", x->parameters.zero_point);
    attributes.set("w_scale", weights->scales);
    replace_product(graph, conv, transposed ? "QConvTranspose" : "QConv", {x->integers, weights->integers},
                    std::move(attributes));
    return true;
}

struct SecondOperand {
    Value* integers = nullptr;
    std::vector<float> scales;
    int64_t zero_point = 0;
};

// Bytes less 128: the same numbers as i8, with a zero point that is 128 less.
Value* shifted_to_signed(Graph& graph, Value* value) {
    Tensor table(DType::i8, {256});
    auto* entries = static_cast<int8_t*>(table.raw_mutable());
    for (int i = 0; i < 256; ++i) entries[i] = static_cast<int8_t>(i - 128);
    Value* shifted =
        graph.add("QLookup", {value, graph.add_constant(std::move(table))}, {}, {}, kKilterDomain);
    shifted->type = value->type;
    shifted->type.dtype = DType::i8;
    return shifted;
}

// The second operand of a product: constant weights, or computed bytes, which kernels want signed.
std::optional<SecondOperand> second_operand(Graph& graph, const Node& node) {
    const int rank = rank_of(node.input(1));
    if (rank < 2) return std::nullopt;
    const bool transposed = node.attributes.get_int("trans_b") != 0;
    if (const auto weights = dequantized_weights(graph, node.input(1), rank - (transposed ? 2 : 1)))
        return SecondOperand{weights->integers, weights->scales};
    const auto computed = dequantized(graph, node.input(1));
    if (!computed || constant_of(graph, computed->integers) != nullptr) return std::nullopt;
    const QuantizationParameters& parameters = computed->parameters;
    if (parameters.dtype == DType::i8)
        return SecondOperand{computed->integers, {parameters.scale}, parameters.zero_point};
    return SecondOperand{
        shifted_to_signed(graph, computed->integers), {parameters.scale}, parameters.zero_point - 128};
}

bool lower_matmul_quantized(Graph& graph, Node& node) {
    const auto a = dequantized(graph, node.input(0));
    if (!a || !has_float_bias(node) || rank_of(node.input(0)) < 2) return false;
    const auto b = second_operand(graph, node);
    if (!b) return false;
    Attributes attributes = node.attributes;
    attributes.erase("alpha");
    attributes.set("a_scale", a->parameters.scale);
    attributes.set("a_zero_point", a->parameters.zero_point);
    attributes.set("b_scale", scale_products(node.attributes.get_float("alpha", 1.0F), b->scales));
    if (b->zero_point != 0) attributes.set("b_zero_point", b->zero_point);
    replace_product(graph, node, "QMatMul", {a->integers, b->integers}, std::move(attributes));
    return true;
}

bool lower_attention(Graph& graph, Node& node) {
    const auto q = dequantized(graph, node.input(0));
    const auto k = dequantized(graph, node.input(1));
    const auto v = dequantized(graph, node.input(2));
    const auto symmetric = [](const std::optional<Dequantized>& input) {
        return input && input->parameters.dtype == DType::i8 && input->parameters.zero_point == 0;
    };
    if (!q || !symmetric(k) || !symmetric(v)) return false;
    if (node.input(3) != nullptr && node.input(3)->type.dtype != DType::f32) return false;
    Attributes attributes = node.attributes;
    attributes.set("q_scale", q->parameters.scale);
    attributes.set("q_zero_point", q->parameters.zero_point);
    attributes.set("k_scale", k->parameters.scale);
    attributes.set("v_scale", v->parameters.scale);
    const QuantizedResult result = quantized_result(graph, node.output());
    set_result(attributes, result.parameters);
    replace(graph, node, result.value, "QAttention", {q->integers, k->integers, v->integers, node.input(3)},
            std::move(attributes));
    return true;
}

std::optional<PostOp> activation(const Graph& graph, const Node& node) {
    if (node.is("Relu")) return PostOp{"relu"};
    if (!node.is("Clip")) return std::nullopt;
    const auto limit = [&](size_t index, double absent) {
        return node.input(index) == nullptr ? std::optional(absent) : scalar_of(graph, node.input(index));
    };
    const auto low = limit(1, -3.4e38);
    const auto high = limit(2, 3.4e38);
    if (!low || !high || *low > *high) return std::nullopt;
    return PostOp{"clip", static_cast<float>(*low), static_cast<float>(*high)};
}

bool lower_arithmetic(Graph& graph, Node& node) {
    const auto a = dequantized(graph, node.input(0));
    const auto b = dequantized(graph, node.input(1));
    if (!a || !b) return false;
    std::vector<PostOp> ops;
    Value* y = node.output();
    if (const Node* next = only_user(graph, y); next != nullptr && next->input(0) == y) {
        if (const auto op = activation(graph, *next)) {
            ops.push_back(*op);
            y = next->output();
        }
    }
    const QuantizedResult result = quantized_result(graph, y);
    if (!result.parameters) return false;
    Attributes attributes;
    attributes.set("a_scale", a->parameters.scale);
    attributes.set("a_zero_point", a->parameters.zero_point);
    attributes.set("b_scale", b->parameters.scale);
    attributes.set("b_zero_point", b->parameters.zero_point);
    set_result(attributes, result.parameters);
    drop_saturating_activation(ops, attributes);
    set_post_ops(attributes, ops);
    replace(graph, node, result.value, node.is("Add") ? "QAdd" : "QMul", {a->integers, b->integers},
            std::move(attributes));
    return true;
}

bool lower_average(Graph& graph, Node& node) {
    const auto x = dequantized(graph, node.input(0));
    if (!x || rank_of(node.input(0)) < 3 || rank_of(node.input(0)) > 5) return false;
    // What ceil_mode looks at beyond the padding is not counted; the integer kernels count whole windows.
    if (node.attributes.get_int("ceil_mode") != 0 && node.attributes.get_int("count_include_pad") != 0)
        return false;
    Attributes attributes = node.attributes;
    attributes.set("x_scale", x->parameters.scale);
    attributes.set("x_zero_point", x->parameters.zero_point);
    const QuantizedResult result = quantized_result(graph, node.output());
    set_result(attributes, result.parameters);
    replace(graph, node, result.value, node.is("AveragePool") ? "QAveragePool" : "QGlobalAveragePool",
            {x->integers}, std::move(attributes));
    return true;
}

bool lower_layer_norm(Graph& graph, Node& node) {
    Value* y = node.output();
    if (y->type.dtype != DType::f32 || node.output(1) != nullptr || node.output(2) != nullptr) return false;
    if (node.attributes.get_int("stash_type", 1) != 1) return false;
    const auto found = std::ranges::find_if(y->users(), [&](const Node* user) {
        return user->is("QuantizeLinear") && user->input(0) == y && tensor_parameters(graph, *user);
    });
    if (found == y->users().end()) return false;
    Node* quantize = *found;
    const bool alone = graph.has_single_use(y);
    Attributes attributes = node.attributes;
    set_result(attributes, tensor_parameters(graph, *quantize));
    Value* integers = graph.add_value({}, quantize->output()->type);
    graph.set_output(node, 0, nullptr);
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    Node* made = graph.add_node("QLayerNormalization", std::move(inputs), {y, integers},
                                std::move(attributes), node.name, kKilterDomain);
    made->origins = node.origins;
    graph.set_inputs(node, {});
    substitute(graph, quantize->output(), integers);
    if (alone) {
        graph.set_output(*made, 0, nullptr);
        graph.remove_value(y);
    }
    return true;
}

}  // namespace

//! Follows docs/arithmetic.md, "Requantization"; what does not fit stays a float operator behind its DequantizeLinear.
bool lower_quantized(Graph& graph) {
    bool changed =
        rewrite(graph, {"Conv", "kilter.Conv", "ConvTranspose", "kilter.ConvTranspose"}, lower_conv);
    changed = rewrite(graph, {"kilter.MatMul"}, lower_matmul_quantized) || changed;
    changed = rewrite(graph, {"kilter.Attention"}, lower_attention) || changed;
    changed = rewrite(graph, {"Add", "Mul"}, lower_arithmetic) || changed;
    changed = rewrite(graph, {"AveragePool", "GlobalAveragePool"}, lower_average) || changed;
    changed = rewrite(graph, {"LayerNormalization"}, lower_layer_norm) || changed;
    return changed;
}

}  // namespace kilter
