// kilter's own operators, and those that few runtimes know, become standard operators: what a file needs.
#include <algorithm>

#include "base/fail.h"
#include "kilter/passes/passes.h"
#include "passes/emit_post_ops.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

// Parameters of a DequantizeLinear, when `value` comes from one.
const Node* dequantize_of(const Value* value) { return produced_by(value, "DequantizeLinear"); }

// The pair that quantizes `value` the way `like` was; other runtimes fuse an operator only when pairs stand right at it.
Value* quantized_like(Graph& graph, Value* value, const Node& like, const std::string& stem) {
    Value* integers =
        emit(graph, "QuantizeLinear", {value, like.input(1), like.input(2)}, stem, like.attributes);
    integers->type.dtype = like.input(0)->type.dtype;
    Value* result =
        emit(graph, "DequantizeLinear", {integers, like.input(1), like.input(2)}, stem, like.attributes);
    result->type = value->type;
    return result;
}

Tensor transposed_matrix(const Tensor& matrix) {
    const int64_t rows = matrix.dim(0);
    const int64_t columns = matrix.dim(1);
    const auto size = static_cast<size_t>(bits(matrix.dtype()) / 8);
    Tensor result(matrix.dtype(), {columns, rows});
    const auto* from = static_cast<const std::byte*>(matrix.raw());
    auto* to = static_cast<std::byte*>(result.raw_mutable());
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            std::copy_n(from + static_cast<size_t>(i * columns + j) * size, size,
                        to + static_cast<size_t>(j * rows + i) * size);
    return result;
}

std::vector<int64_t> swapping_perm(int rank) {
    std::vector<int64_t> perm(static_cast<size_t>(rank));
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return perm;
}

void swap_last(ValueType& type) {
    if (type.shape && type.shape->size() >= 2) std::swap(type.shape->end()[-1], type.shape->end()[-2]);
}

// `value` with its last two axes swapped: constants are stored so, integers stay integers.
Value* swapped(Graph& graph, Value* value, const std::string& stem) {
    if (const Tensor* matrix = graph.constant(value); matrix != nullptr && matrix->rank() == 2)
        return graph.add_constant(transposed_matrix(*matrix),
                                  graph.fresh_name(value->name() + "_transposed"));
    const Node* dequantize = dequantize_of(value);
    if (dequantize != nullptr) {
        const Tensor* matrix = graph.constant(dequantize->input(0));
        if (matrix != nullptr && matrix->rank() == 2) {
            Value* integers = graph.add_constant(
                transposed_matrix(*matrix), graph.fresh_name(dequantize->input(0)->name() + "_transposed"));
            Attributes attributes = dequantize->attributes;
            if (attributes.has("axis")) attributes.set("axis", int64_t{1 - attributes.get_int("axis")});
            Value* result =
                emit(graph, "DequantizeLinear", {integers, dequantize->input(1), dequantize->input(2)}, stem,
                     std::move(attributes));
            result->type = value->type;
            swap_last(result->type);
            return result;
        }
    }
    Attributes attributes;
    attributes.set("perm", swapping_perm(rank_of(value)));
    Value* result = emit(graph, "Transpose", {value}, stem, std::move(attributes));
    swap_last(result->type);
    return dequantize == nullptr ? result : quantized_like(graph, result, *dequantize, stem);
}

// The node makes `result` no longer; the operators that end in `x` do.
void finish(Graph& graph, Node& node, Value* x) {
    Value* result = node.output();
    Node* last = x->producer();
    graph.set_output(node, 0, nullptr);
    graph.set_output(*last, 0, nullptr);
    graph.remove_value(x);
    graph.set_output(*last, 0, result);
    graph.set_inputs(node, {});
}

bool expand_matmul(Graph& graph, Node& node) {
    if (!post_ops(node).empty()) split_post_ops(graph, node, 0);
    Value* a = node.input(0);
    Value* b = node.input(1);
    Value* bias = node.input(2);
    const std::string name = node.name.empty() ? node.output()->name() : node.name;
    const bool trans_a = node.attributes.get_int("trans_a") != 0;
    const bool trans_b = node.attributes.get_int("trans_b") != 0;
    const float alpha = node.attributes.get_float("alpha", 1.0F);
    const bool matrices = rank_of(a) == 2 && rank_of(b) == 2;
    node.attributes = {};
    if (matrices && (bias != nullptr || trans_a || trans_b || alpha != 1.0F)) {
        graph.set_op(node, "Gemm");
        if (trans_a) node.attributes.set("transA", int64_t{1});
        if (trans_b) node.attributes.set("transB", int64_t{1});
        if (alpha != 1.0F) node.attributes.set("alpha", alpha);
        return true;
    }
    if (trans_a) a = swapped(graph, a, name);
    if (trans_b) b = swapped(graph, b, name);
    graph.set_op(node, "MatMul");
    graph.set_inputs(node, {a, b});
    if (alpha == 1.0F && bias == nullptr) return true;
    Value* result = node.output();
    Value* x = graph.add_value(graph.fresh_name(result->name() + "/MatMul"), result->type);
    graph.set_output(node, 0, x);
    if (alpha != 1.0F) x = emit(graph, "Mul", {x, add_scalar(graph, alpha, x)}, name);
    // A bias in int32 stays so: ONNX Runtime makes a Gemm of a product and its bias once it knows the shapes, be it by
    // overriding open dimensions, and runs that on integers only when the bias is on integers, too.
    if (bias != nullptr) x = emit(graph, "Add", {x, bias}, name);
    Node* last = x->producer();
    graph.set_output(*last, 0, nullptr);
    graph.remove_value(x);
    graph.set_output(*last, 0, result);
    return true;
}

bool expand_convolution(Graph& graph, Node& node) {
    split_post_ops(graph, node, 0);
    for (const std::string_view attribute : {"post_ops", "post_alphas", "post_betas"})
        node.attributes.erase(attribute);
    graph.set_op(node, std::string(node.op()));
    return true;
}

// Probabilities lie in [0, 1]: on integers they are u8 at 1/255 (docs/arithmetic.md, "Attention").
Value* quantized_probabilities(Graph& graph, Value* p, const std::string& stem) {
    Value* scale =
        graph.add_constant(Tensor::scalar<float>(1.0F / 255), graph.fresh_name(stem + "/probability_scale"));
    Value* zero =
        graph.add_constant(Tensor::scalar<uint8_t>(0), graph.fresh_name(stem + "/probability_zero_point"));
    Value* integers = emit(graph, "QuantizeLinear", {p, scale, zero}, stem);
    integers->type.dtype = DType::u8;
    Value* result = emit(graph, "DequantizeLinear", {integers, scale, zero}, stem);
    result->type = p->type;
    return result;
}

bool expand_attention(Graph& graph, Node& node) {
    Value* q = node.input(0);
    Value* k = node.input(1);
    Value* v = node.input(2);
    const std::string name = node.name.empty() ? node.output()->name() : node.name;
    const bool on_integers =
        dequantize_of(q) != nullptr && dequantize_of(k) != nullptr && dequantize_of(v) != nullptr;
    if (node.attributes.get_int("k_transposed") == 0) k = swapped(graph, k, name);
    Value* scores = emit(graph, "MatMul", {q, k}, name);
    if (scores->type.shape && k->type.shape && !k->type.shape->empty())
        scores->type.shape->back() = k->type.shape->back();
    if (const float scale = node.attributes.get_float("scale", 1.0F); scale != 1.0F)
        scores = emit(graph, "Mul", {scores, add_scalar(graph, scale, q)}, name);
    if (node.input(3) != nullptr) scores = emit(graph, "Add", {scores, node.input(3)}, name);
    Attributes last_axis;
    last_axis.set("axis", int64_t{-1});
    Value* p = emit(graph, "Softmax", {scores}, name, std::move(last_axis));
    if (on_integers) p = quantized_probabilities(graph, p, name);
    Value* y = graph.add("MatMul", {p, v}, {}, name);
    y->type = node.output()->type;
    finish(graph, node, y);
    return true;
}

// Operators of newer opsets in forms that opset 13 has.
bool expand_activation(Graph& graph, Node& node) {
    const std::string name = node.name.empty() ? node.output()->name() : node.name;
    PostOp op{"mish"};
    if (node.is("Gelu"))
        op.name = node.attributes.get_string("approximate", "none") == "tanh" ? "gelu_tanh" : "gelu_erf";
    if (node.is("Swish")) op = {"swish", node.attributes.get_float("alpha", 1.0F)};
    finish(graph, node, emit_post_op(graph, op, node.input(0), nullptr, name));
    return true;
}

// To the digits that other runtimes have for it.
bool expand_erfc(Graph& graph, Node& node) {
    const std::string name = node.name.empty() ? node.output()->name() : node.name;
    Value* x = node.input(0);
    Value* erf = emit(graph, "Erf", {x}, name);
    finish(graph, node, emit(graph, "Sub", {add_scalar(graph, 1.0, x), erf}, name));
    return true;
}

}  // namespace

//! Keeps the function; DequantizeLinear and QuantizeLinear stay where they are, with pairs added where other runtimes need them.
bool expand_fused(Graph& graph) {
    return rewrite(graph,
                   {"kilter.Conv", "kilter.ConvTranspose", "kilter.MatMul", "kilter.Attention", "kilter.Erfc",
                    "Gelu", "Swish", "Mish"},
                   [](Graph& g, Node& node) {
                       if (node.is_kilter("Erfc")) return expand_erfc(g, node);
                       if (node.is_kilter("MatMul")) return expand_matmul(g, node);
                       if (node.is_kilter("Attention")) return expand_attention(g, node);
                       return node.domain().empty() ? expand_activation(g, node)
                                                    : expand_convolution(g, node);
                   });
}

}  // namespace kilter
