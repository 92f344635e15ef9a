// Shape asks the last of several values of the same shape, so that the ones before it have one reader and can
// fuse. Exporters of models with dynamic sizes ask for the shape of a convolution's output when its
// activation would do.
#include <array>

#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

constexpr std::array<std::string_view, 22> kUnary{
    "Abs",       "BatchNormalization", "Cast",       "Clip", "Elu",   "Erf",  "Exp",     "Gelu",
    "HardSwish", "HardSigmoid",        "Identity",   "Mish", "Neg",   "Relu", "Sigmoid", "Softmax",
    "LeakyRelu", "Softplus",           "Reciprocal", "Sqrt", "Swish", "Tanh"};

// Does `node` compute a value of the shape of `x` from it and constants alone?
bool keeps_shape(const Graph& graph, const Node& node, const Value* x) {
    if (node.output() == nullptr) return false;
    if (is_any(node, kUnary)) return node.input(0) == x;
    if (!is_any(node, {"Add", "Sub", "Mul", "Div", "Max", "Min"})) return false;
    const Value* other = other_input(node, x);
    const Tensor* tensor = constant_of(graph, other);
    return tensor != nullptr && x->type.shape && broadcasts_into(to_dims(tensor->shape()), *x->type.shape);
}

// The only reader of `x` that is no Shape itself.
Node* only_computation(const Graph& graph, const Value* x) {
    Node* found = nullptr;
    if (graph.is_output(x)) return nullptr;
    for (Node* user : x->users()) {
        if (user->is("Shape")) continue;
        if (found != nullptr) return nullptr;
        found = user;
    }
    return found;
}

}  // namespace

//! Follows readers that take nothing but constants beside the value: nothing else can depend on the Shape
//! itself.
bool sink_shapes(Graph& graph) {
    return rewrite(graph, "Shape", [](Graph& g, Node& shape) {
        Value* x = shape.input(0);
        while (const Node* user = only_computation(g, x)) {
            if (!keeps_shape(g, *user, x)) break;
            x = user->output();
        }
        if (x == shape.input(0)) return false;
        g.set_input(shape, 0, x);
        return true;
    });
}

}  // namespace kilter
