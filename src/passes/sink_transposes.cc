// Transposes move towards the outputs, through operators that do not care about the order of axes, until they
// meet others and cancel: what frameworks with channels-last layout leave around every convolution.
#include <algorithm>
#include <array>
#include <numeric>

#include "engine/ref/executor.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

using Perm = std::vector<int64_t>;

constexpr std::array<std::string_view, 34> kElementwise{
    "Abs",  "Add",   "And",     "Ceil", "Clip",        "Cast",      "Celu",     "Div",       "Elu",
    "Erf",  "Exp",   "Floor",   "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log",
    "Max",  "Min",   "Mish",    "Mul",  "Neg",         "Not",       "Pow",      "PRelu",     "Reciprocal",
    "Relu", "Round", "Sigmoid", "Sqrt", "Sub",         "Sum",       "Swish"};
constexpr std::array<std::string_view, 6> kMoreElementwise{"Softplus", "Softsign", "Tanh",
                                                           "Where",    "Greater",  "Less"};
constexpr std::array<std::string_view, 8> kReductions{"ReduceMean", "ReduceSum",      "ReduceMax",
                                                      "ReduceMin",  "ReduceL2",       "ReduceL1",
                                                      "ReduceProd", "ReduceSumSquare"};

bool is_elementwise(const Node& node) { return is_any(node, kElementwise) || is_any(node, kMoreElementwise); }

// Empty when it is not known.
Perm perm_of(const Node& transpose) {
    Perm perm = transpose.attributes.get_ints("perm");
    if (!perm.empty()) {
        Perm sorted = perm;
        std::ranges::sort(sorted);
        for (size_t i = 0; i < perm.size(); ++i)
            if (sorted[i] != static_cast<int64_t>(i)) return {};
        return perm;
    }
    if (rank_of(transpose.input(0)) < 0) return {};
    perm.resize(static_cast<size_t>(rank_of(transpose.input(0))));
    std::iota(perm.rbegin(), perm.rend(), 0);
    return perm;
}

Perm inverse(const Perm& perm) {
    Perm result(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) result[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    return result;
}

Dims permuted(const Dims& dims, const Perm& perm) {
    Dims result;
    for (const int64_t axis : perm) result.push_back(dims[static_cast<size_t>(axis)]);
    return result;
}

// The layout operands of a node: all but the limits of Clip.
size_t operand_count(const Node& node) { return node.is("Clip") ? 1 : node.inputs().size(); }

// One element can stand beside any layout.
bool is_single_element(const Value* value) {
    return value->type.is_static() && element_count(value->type.static_shape()) == 1;
}

// How an operand behaves when the axes of `perm` are undone in front of the node.
bool can_undo(const Graph& graph, const Value* operand, const Perm& perm) {
    if (operand == nullptr) return false;
    if (const Node* transpose = produced_by(operand, "Transpose")) return perm_of(*transpose) == perm;
    const auto rank = static_cast<int>(perm.size());
    if (const Tensor* tensor = constant_of(graph, operand)) return tensor->rank() <= rank;
    return is_single_element(operand) && rank_of(operand) <= rank;
}

// transpose(constant, inverse(perm)), after the missing leading axes were added.
Value* undo_constant(Graph& graph, const Tensor& tensor, const Perm& perm) {
    Shape shape(perm.size() - tensor.shape().size(), 1);
    shape.insert(shape.end(), tensor.shape().begin(), tensor.shape().end());
    const Perm back = inverse(perm);
    Graph scratch;
    Value* x = scratch.add_input("x", ValueType::of(tensor));
    Attributes attributes;
    attributes.set("perm", back);
    scratch.add("Transpose", {x}, attributes);
    return graph.add_constant(ref::run_node(*scratch.nodes().front(), {tensor.reshaped(shape)}).front());
}

Value* undo(Graph& graph, Value* operand, const Perm& perm) {
    if (const Node* transpose = produced_by(operand, "Transpose")) return transpose->input(0);
    if (is_single_element(operand)) return operand;
    return undo_constant(graph, *constant_of(graph, operand), perm);
}

std::optional<std::vector<int64_t>> constant_axes(const Graph& graph, const Value* value, size_t rank) {
    auto axes = int_constants(graph, value);
    if (!axes || axes->empty()) return std::nullopt;
    for (int64_t& axis : *axes) {
        if (axis < 0) axis += static_cast<int64_t>(rank);
        if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
    }
    return axes;
}

// What is left of `perm` when the axes of its output in `reduced` disappear.
Perm without(const Perm& perm, const std::vector<int64_t>& reduced) {
    Perm kept;
    for (size_t i = 0; i < perm.size(); ++i)
        if (std::ranges::find(reduced, static_cast<int64_t>(i)) == reduced.end()) kept.push_back(perm[i]);
    Perm sorted = kept;
    std::ranges::sort(sorted);
    for (int64_t& axis : kept) axis = std::ranges::find(sorted, axis) - sorted.begin();
    return kept;
}

// The transpose behind a reduction; nothing when its axes are not known.
std::optional<Perm> reduced_perm(const Graph& graph, const Node& node, const Perm& perm) {
    const auto axes = constant_axes(graph, node.input(1), perm.size());
    if (!axes) return std::nullopt;
    return node.attributes.get_int("keepdims", 1) == 0 ? without(perm, *axes) : perm;
}

bool can_undo_all(const Graph& graph, const Node& node, const Perm& perm) {
    for (size_t i = 0; i < operand_count(node); ++i)
        if (!can_undo(graph, node.input(i), perm)) return false;
    return true;
}

// Can `node` work on the layout in front of a transpose with `perm` that feeds it?
bool can_sink(const Graph& graph, const Node& node, const Perm& perm) {
    const auto rank = static_cast<int>(perm.size());
    if (perm.empty() || node.output() == nullptr) return false;
    if (is_any(node, kReductions)) {
        const auto after = reduced_perm(graph, node, perm);
        return can_undo(graph, node.input(0), perm) && after &&
               rank_of(node.output()) == static_cast<int>(after->size());
    }
    if (rank_of(node.output()) != rank) return false;
    if (is_elementwise(node)) return can_undo_all(graph, node, perm);
    if (node.is("Concat")) {
        const int64_t axis = node.attributes.get_int("axis");
        return axis >= -rank && axis < rank && can_undo_all(graph, node, perm);
    }
    if (!can_undo(graph, node.input(0), perm)) return false;
    if (node.is("Slice")) return constant_axes(graph, node.input(3), perm.size()).has_value();
    const auto pads = node.is("Pad") ? int_constants(graph, node.input(1)) : std::nullopt;
    if (!pads) return false;
    if (node.input(3) != nullptr) return constant_axes(graph, node.input(3), perm.size()).has_value();
    return pads->size() == 2 * perm.size();
}

std::vector<int64_t> mapped(std::vector<int64_t> axes, const Perm& perm) {
    for (int64_t& axis : axes) axis = perm[static_cast<size_t>(axis)];
    return axes;
}

void sink(Graph& graph, Node& node, const Perm& perm) {
    Perm after = perm;
    const size_t operands = is_elementwise(node) || node.is("Concat") ? operand_count(node) : 1;
    if (node.is("Concat")) {
        const int64_t axis = node.attributes.get_int("axis");
        node.attributes.set(
            "axis", perm[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(perm.size()) : axis)]);
    } else if (is_any(node, kReductions)) {
        const auto axes = *constant_axes(graph, node.input(1), perm.size());
        after = *reduced_perm(graph, node, perm);
        graph.set_input(node, 1, add_ints(graph, mapped(axes, perm)));
    } else if (node.is("Pad") && node.input(3) == nullptr) {
        const auto pads = *int_constants(graph, node.input(1));
        std::vector<int64_t> moved(pads.size());
        for (size_t i = 0; i < perm.size(); ++i) {
            moved[static_cast<size_t>(perm[i])] = pads[i];
            moved[static_cast<size_t>(perm[i]) + perm.size()] = pads[i + perm.size()];
        }
        graph.set_input(node, 1, add_ints(graph, moved));
    } else if (node.is("Pad") || node.is("Slice")) {
        graph.set_input(node, 3,
                        add_ints(graph, mapped(*constant_axes(graph, node.input(3), perm.size()), perm)));
    }
    for (size_t i = 0; i < operands; ++i) graph.set_input(node, i, undo(graph, node.input(i), perm));

    Value* result = node.output();
    graph.set_output(node, 0, nullptr);
    Value* inner = graph.add_value(graph.fresh_name(result->name()));
    inner->type = ValueType(result->type.dtype, permuted(*result->type.shape, inverse(after)));
    graph.set_output(node, 0, inner);
    Attributes attributes;
    attributes.set("perm", after);
    graph.add_node("Transpose", {inner}, {result}, std::move(attributes));
}

// Sinking past one reader must not leave the transpose behind for another one: then there would be two.
bool disappears(const Graph& graph, const Value* transposed, const Perm& perm) {
    if (graph.is_output(transposed)) return false;
    return std::ranges::all_of(transposed->users(), [&](const Node* user) {
        return user->is("Transpose") || (user->subgraphs().empty() && can_sink(graph, *user, perm));
    });
}

bool try_sink(Graph& graph, Node& node) {
    for (size_t i = 0; i < operand_count(node); ++i) {
        const Node* transpose = produced_by(node.input(i), "Transpose");
        if (transpose == nullptr) continue;
        const Perm perm = perm_of(*transpose);
        if (!disappears(graph, node.input(i), perm) || !can_sink(graph, node, perm)) continue;
        sink(graph, node, perm);
        return true;
    }
    return false;
}

// Transposes of a transpose merge; one that only moves axes of length 1 is a Reshape.
bool simplify_transpose(Graph& graph, Node& node) {
    const Perm perm = perm_of(node);
    if (const Node* before = produced_by(node.input(0), "Transpose")) {
        const Perm first = perm_of(*before);
        if (first.size() != perm.size() || perm.empty()) return false;
        Attributes attributes;
        attributes.set("perm", mapped(perm, first));
        Value* x = before->input(0);
        if (std::ranges::is_sorted(mapped(perm, first))) {
            substitute(graph, node.output(), x);
        } else {
            graph.set_input(node, 0, x);
            node.attributes = std::move(attributes);
        }
        return true;
    }
    const auto& shape = node.input(0)->type.shape;
    if (!shape || shape->size() != perm.size() || std::ranges::is_sorted(perm)) return false;
    // As a transpose it can still pass what follows, e.g. a bias that then moves into the convolution before it.
    if (!node.output()->users().empty() && disappears(graph, node.output(), perm)) return false;
    int64_t last = -1;
    std::vector<int64_t> target;
    for (const int64_t axis : perm) {
        const Dim& dim = (*shape)[static_cast<size_t>(axis)];
        target.push_back(dim.known() ? dim.value : -1);
        if (dim == Dim(1)) continue;
        if (axis < last || dim == Dim(0)) return false;
        last = axis;
    }
    if (std::ranges::count(target, -1) > 1) return false;
    replace_with(graph, node.output(), "Reshape", {node.input(0), add_ints(graph, target)})->origins.clear();
    return true;
}

}  // namespace

//! Needs ranks. Element-wise operators with constants, reductions, Concat, Pad and Slice let transposes pass.
bool sink_transposes(Graph& graph) {
    return rewrite_all(graph, [](Graph& g, Node& node) {
        if (node.is("Transpose")) return simplify_transpose(g, node);
        const bool lets_pass =
            is_elementwise(node) || is_any(node, kReductions) || is_any(node, {"Concat", "Pad", "Slice"});
        return lets_pass && try_sink(g, node);
    });
}

}  // namespace kilter
