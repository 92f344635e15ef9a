// Activations from their spelled-out forms: Swish, HardSigmoid, HardSwish and Mish.
#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

// Limits of clip(x + shift, 0, top), the core of the hard activations.
struct Ramp {
    Value* x = nullptr;
    double shift = 0;
    double top = 0;
};

std::optional<Ramp> match_ramp(const Graph& graph, const Node& clip) {
    const auto low = scalar_of(graph, clip.input(1));
    const auto high = scalar_of(graph, clip.input(2));
    const auto sum = match_scalar(graph, clip.input(0)->producer(), "Add");
    if (!low || *low != 0 || !high || *high <= 0 || !sum) return std::nullopt;
    return Ramp{sum->x, sum->c, *high};
}

// The single reader of `value` that divides it by `divisor`.
Node* divided_by(const Graph& graph, const Value* value, double divisor) {
    Node* user = only_user(graph, value);
    if (const auto div = match_scalar(graph, user, "Div"); div && near(div->c, divisor)) return user;
    if (const auto mul = match_scalar(graph, user, "Mul"); mul && near(mul->c, 1 / divisor)) return user;
    return nullptr;
}

// clip(x + 3, 0, 6) / 6, or x · clip(x + 3, 0, 6) / 6
bool from_clip(Graph& graph, Node& clip) {
    const auto ramp = match_ramp(graph, clip);
    if (!ramp || !is_float(clip.output())) return false;
    if (const Node* scaled = divided_by(graph, clip.output(), ramp->top)) {
        Attributes attributes;
        attributes.set("alpha", static_cast<float>(1 / ramp->top));
        attributes.set("beta", static_cast<float>(ramp->shift / ramp->top));
        replace_with(graph, scaled->output(), "HardSigmoid", {ramp->x}, std::move(attributes));
        return true;
    }
    const Node* product = only_user(graph, clip.output());
    if (product == nullptr || !product->is("Mul") || ramp->shift != 3 || ramp->top != 6) return false;
    Value* other = other_input(*product, clip.output());
    if (const Node* scaled = divided_by(graph, product->output(), 6); scaled != nullptr && other == ramp->x) {
        replace_with(graph, scaled->output(), "HardSwish", {ramp->x});
        return true;
    }
    if (other == nullptr) return false;
    if (const ScalarOperand part = strip_scale(graph, other); part.x == ramp->x && near(part.c, 1.0 / 6)) {
        replace_with(graph, product->output(), "HardSwish", {ramp->x});
        return true;
    }
    return false;
}

// x · gate(x) where the gate has no other reader
Node* gating_product(const Graph& graph, const Node& gate, const Value* x) {
    Node* product = only_user(graph, gate.output());
    return product != nullptr && product->is("Mul") && other_input(*product, gate.output()) == x ? product
                                                                                                 : nullptr;
}

bool from_hard_sigmoid(Graph& graph, Node& gate) {
    if (!near(gate.attributes.get_float("alpha", 0.2F), 1.0 / 6) ||
        !near(gate.attributes.get_float("beta", 0.5F), 0.5))
        return false;
    const Node* product = gating_product(graph, gate, gate.input(0));
    if (product == nullptr) return false;
    replace_with(graph, product->output(), "HardSwish", {gate.input(0)});
    return true;
}

bool from_sigmoid(Graph& graph, Node& gate) {
    ScalarOperand argument{gate.input(0), 1};
    const Node* product = gating_product(graph, gate, argument.x);
    if (product == nullptr) {
        argument = strip_scale(graph, gate.input(0));
        product = gating_product(graph, gate, argument.x);
    }
    if (product == nullptr) return false;
    Attributes attributes;
    attributes.set("alpha", static_cast<float>(argument.c));
    replace_with(graph, product->output(), "Swish", {argument.x}, std::move(attributes));
    return true;
}

bool from_tanh(Graph& graph, Node& gate) {
    const Node* softplus = produced_by(gate.input(0), "Softplus");
    if (softplus == nullptr) return false;
    const Node* product = gating_product(graph, gate, softplus->input(0));
    if (product == nullptr) return false;
    replace_with(graph, product->output(), "Mish", {softplus->input(0)});
    return true;
}

}  // namespace

//! The inner values must have no other readers; x may.
bool recognize_activations(Graph& graph) {
    return rewrite(graph, {"Clip", "HardSigmoid", "Sigmoid", "Tanh"}, [](Graph& g, Node& node) {
        if (node.is("Clip")) return from_clip(g, node);
        if (node.is("HardSigmoid")) return from_hard_sigmoid(g, node);
        return node.is("Sigmoid") ? from_sigmoid(g, node) : from_tanh(g, node);
    });
}

}  // namespace kilter
