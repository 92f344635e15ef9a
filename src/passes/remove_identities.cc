// Identity removal: operators that return their input unchanged, known from attributes, constants or shapes.
#include <algorithm>

#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

bool all_equal(const std::optional<std::vector<int64_t>>& numbers, int64_t wanted) {
    return numbers && std::ranges::all_of(*numbers, [&](int64_t number) { return number == wanted; });
}

bool is_inference_dropout(const Graph& graph, const Node& node) {
    if (const Value* mask = node.output(1);
        mask != nullptr && (!mask->users().empty() || graph.is_output(mask)))
        return false;
    if (node.input(2) == nullptr) return true;
    const Tensor* training = constant_of(graph, node.input(2));
    return training != nullptr && training->size() == 1 && training->to_ints().front() == 0;
}

// Element counts agree, so one pair of dimensions may be unknown.
bool reshapes_to_itself(const Node& node) {
    const Value* x = node.input(0);
    const Value* y = node.output();
    if (!x->type.shape || !y->type.shape || x->type.shape->size() != y->type.shape->size()) return false;
    int unproven = 0;
    for (size_t axis = 0; axis < x->type.shape->size(); ++axis) {
        const Dim& from = (*x->type.shape)[axis];
        const Dim& to = (*y->type.shape)[axis];
        if (from == Dim(0)) return false;
        if (!(from == to)) ++unproven;
    }
    return unproven <= 1;
}

bool is_identity_transpose(const Node& node) {
    const std::vector<int64_t> perm = node.attributes.get_ints("perm");
    if (perm.empty()) return rank_of(node.input(0)) >= 0 && rank_of(node.input(0)) <= 1;
    for (size_t i = 0; i < perm.size(); ++i)
        if (perm[i] != static_cast<int64_t>(i)) return false;
    return true;
}

bool is_full_slice(const Graph& graph, const Node& node) {
    return all_equal(int_constants(graph, node.input(4), std::vector<int64_t>{}), 1) &&
           same_shape(node.input(0), node.output());
}

bool has_neutral_constant(const Graph& graph, const Node& node) {
    const double neutral = node.is("Add") || node.is("Sub") ? 0.0 : 1.0;
    const auto scalar = match_scalar(graph, &node, node.op());
    return scalar && scalar->c == neutral;
}

// What a cast back to the type before a widening cast returns: bf16 to f32 and back loses nothing.
Value* before_widening(const Node& cast) {
    const Node* first = produced_by(cast.input(0), "Cast");
    if (first == nullptr) return nullptr;
    const DType narrow = first->input(0)->type.dtype;
    const DType wide = cast.input(0)->type.dtype;
    const bool widens =
        (narrow == DType::bf16 || narrow == DType::f16) && (wide == DType::f32 || wide == DType::f64);
    return widens && cast.output()->type.dtype == narrow ? first->input(0) : nullptr;
}

// The input that `node` returns; null when it does something.
Value* returned_input(const Graph& graph, const Node& node) {
    Value* x = node.input(0);
    const bool single = node.inputs().size() == 1;
    if (x == nullptr) return nullptr;
    if (node.is("Identity")) return x;
    if (node.is("Dropout")) return is_inference_dropout(graph, node) ? x : nullptr;
    if (node.is("Cast")) {
        if (x->type.dtype != DType::undefined && x->type.dtype == node.output()->type.dtype) return x;
        return before_widening(node);
    }
    if (is_any(node, {"Reshape", "Flatten"})) return reshapes_to_itself(node) ? x : nullptr;
    if (node.is("Transpose")) return is_identity_transpose(node) ? x : nullptr;
    if (node.is("Slice")) return is_full_slice(graph, node) ? x : nullptr;
    if (node.is("Pad")) return all_equal(int_constants(graph, node.input(1)), 0) ? x : nullptr;
    if (node.is("Tile")) return all_equal(int_constants(graph, node.input(1)), 1) ? x : nullptr;
    if (node.is("Expand")) return same_shape(x, node.output()) ? x : nullptr;
    if (is_any(node, {"Concat", "Sum", "Max", "Min", "Mean"})) return single ? x : nullptr;
    if (node.is("Split")) return node.outputs().size() == 1 && same_shape(x, node.output()) ? x : nullptr;
    if (node.is("Clip")) return node.input(1) == nullptr && node.input(2) == nullptr ? x : nullptr;
    if (is_any(node, {"Add", "Sub", "Mul", "Div", "Pow"}))
        return has_neutral_constant(graph, node) ? match_scalar(graph, &node, node.op())->x : nullptr;
    return nullptr;
}

// An operand need not be expanded for an operator that broadcasts, when another one has the full shape
// already.
bool bypass_expand(Graph& graph, Node& node) {
    if (!is_any(node, {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Where", "And", "Or", "Equal"}))
        return false;
    bool changed = false;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
        const Node* expand = produced_by(node.input(i), "Expand");
        if (expand == nullptr || !same_shape(node.input(i), node.output())) continue;
        for (size_t j = 0; j < node.inputs().size(); ++j) {
            if (j == i || node.input(j) == node.input(i) || !same_shape(node.input(j), node.output()))
                continue;
            graph.set_input(node, i, expand->input(0));
            changed = true;
            break;
        }
    }
    return changed;
}

}  // namespace

//! Identity, Dropout at inference, and Cast, Reshape, Transpose, Slice, Pad, Tile, Expand, Concat, Split and
//! arithmetic that change nothing. Shapes must be known where they are the reason.
bool remove_identities(Graph& graph) {
    return rewrite_all(graph, [](Graph& g, Node& node) {
        Value* x = returned_input(g, node);
        if (x == nullptr) return bypass_expand(g, node);
        substitute(g, node.output(), x);
        return true;
    });
}

}  // namespace kilter
