// MatMul and Gemm become kilter.MatMul, which also takes over transposes of its operands and a bias behind
// it.
#include <algorithm>

#include "ops/post_ops.h"
#include "passes/channel_affine.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

bool from_matmul(Graph& graph, Node& node) {
    // The product of vectors has rules of its own; kilter.MatMul knows matrices and stacks of them.
    if (rank_of(node.input(0)) < 2 || rank_of(node.input(1)) < 2 || !is_float(node.output())) return false;
    graph.set_op(node, "MatMul", kKilterDomain);
    return true;
}

// Gemm's C has a form that a bias can take: one number, or one per column.
bool is_bias(const Graph& graph, const Value* c, const Dim& columns) {
    if (!c->type.shape) return false;
    const Dims& dims = *c->type.shape;
    const bool constant = constant_of(graph, c) != nullptr;
    if (dims.empty()) return constant;
    if (dims.size() == 2 && !(constant && dims[0] == Dim(1))) return false;
    return dims.size() <= 2 && (dims.back() == Dim(1) || dims.back() == columns);
}

Value* scaled(Graph& graph, Value* value, double factor) {
    if (factor == 1.0) return value;
    Value* result = graph.add("Mul", {value, add_scalar(graph, factor, value)});
    result->type = value->type;
    return result;
}

// beta·C, flattened for a bias; a constant stays one.
Value* make_bias(Graph& graph, Value* c, double beta) {
    const Tensor* tensor = constant_of(graph, c);
    if (tensor == nullptr) return scaled(graph, c, beta);
    if (beta == 1.0 && tensor->rank() == 1) return c;
    std::vector<double> numbers = tensor->to_doubles();
    for (double& number : numbers) number *= beta;
    const Shape shape{tensor->size()};
    return graph.add_constant(Tensor::of<double>(shape, numbers).converted(tensor->dtype()),
                              graph.fresh_name(c->name()));
}

bool from_gemm(Graph& graph, Node& gemm) {
    if (!is_float(gemm.output()) || rank_of(gemm.output()) != 2) return false;
    Value* c = gemm.input(2);
    if (c != nullptr && !c->type.shape) return false;
    const double alpha = gemm.attributes.get_float("alpha", 1.0F);
    const double beta = gemm.attributes.get_float("beta", 1.0F);
    const int64_t trans_a = gemm.attributes.get_int("transA");
    const int64_t trans_b = gemm.attributes.get_int("transB");
    graph.set_op(gemm, "MatMul", kKilterDomain);
    gemm.attributes = {};
    if (trans_a != 0) gemm.attributes.set("trans_a", int64_t{1});
    if (trans_b != 0) gemm.attributes.set("trans_b", int64_t{1});
    graph.set_inputs(gemm, {gemm.input(0), gemm.input(1)});
    if (alpha != 1.0 && !absorb_affine(graph, gemm, {{alpha}, {0.0}}))
        gemm.attributes.set("alpha", static_cast<float>(alpha));
    if (c == nullptr || beta == 0.0) return true;
    if (is_bias(graph, c, gemm.output()->type.shape->back())) {
        graph.set_input(gemm, 2, make_bias(graph, c, beta));
    } else {
        append_post_op(graph, gemm, "add", 0, 0, scaled(graph, c, beta));
    }
    return true;
}

// The matrix behind a Transpose that swaps just the last two axes.
Value* before_swap(const Value* operand) {
    const Node* transpose = produced_by(operand, "Transpose");
    if (transpose == nullptr) return nullptr;
    const auto rank = static_cast<size_t>(std::max(rank_of(operand), 0));
    const std::vector<int64_t> perm = transpose->attributes.get_ints("perm");
    if (perm.size() != rank || rank < 2) return rank == 2 && perm.empty() ? transpose->input(0) : nullptr;
    for (size_t i = 0; i + 2 < rank; ++i)
        if (perm[i] != static_cast<int64_t>(i)) return nullptr;
    return perm[rank - 2] == static_cast<int64_t>(rank) - 1 &&
                   perm[rank - 1] == static_cast<int64_t>(rank) - 2
               ? transpose->input(0)
               : nullptr;
}

bool absorb_transposes(Graph& graph, Node& node) {
    bool changed = false;
    for (size_t i = 0; i < 2; ++i) {
        Value* matrix = before_swap(node.input(i));
        if (matrix == nullptr) continue;
        const std::string_view flag = i == 0 ? "trans_a" : "trans_b";
        node.attributes.set(flag, int64_t{node.attributes.get_int(flag) == 0 ? 1 : 0});
        add_origins(node, *node.input(i)->producer());
        graph.set_input(node, i, matrix);
        changed = true;
    }
    return changed;
}

// A computed bias; constant ones are the business of fold_scale_shift.
bool absorb_bias(Graph& graph, Node& node) {
    Node* add = only_user(graph, node.output());
    if (add == nullptr || !add->is("Add") || node.input(2) != nullptr || !has_channels(node)) return false;
    Value* bias = other_input(*add, node.output());
    if (bias == nullptr || constant_of(graph, bias) != nullptr || rank_of(bias) != 1 ||
        rank_of(node.output()) < 2)
        return false;
    if (!(bias->type.shape->back() == node.output()->type.shape->back())) return false;
    graph.set_input(node, 2, bias);
    take_over(graph, node, *add);
    return true;
}

}  // namespace

//! Needs element types and ranks. A transposed constant is only marked as such, not copied.
bool lower_matmul(Graph& graph) {
    return rewrite(graph, {"MatMul", "Gemm", "kilter.MatMul"}, [](Graph& g, Node& node) {
        bool changed = false;
        if (node.is("MatMul")) changed = from_matmul(g, node);
        if (node.is("Gemm")) changed = from_gemm(g, node);
        if (!node.is_kilter("MatMul")) return changed;
        changed = absorb_transposes(g, node) || changed;
        return absorb_bias(g, node) || changed;
    });
}

}  // namespace kilter
