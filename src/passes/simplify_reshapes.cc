// Reshape, Squeeze, Unsqueeze and Flatten move no data: a chain of them is one Reshape with a constant shape.
#include <algorithm>
#include <array>

#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

constexpr std::array<std::string_view, 4> kReshapes{"Reshape", "Squeeze", "Unsqueeze", "Flatten"};

// The target of a Reshape from `from` to `to`, when numbers, copies (0) and one inferred entry (-1) can
// express it.
std::optional<std::vector<int64_t>> target(const Value* from, const Value* to) {
    if (!to->type.shape) return std::nullopt;
    const Dims& wanted = *to->type.shape;
    std::vector<int64_t> shape;
    bool inferred = false;
    for (size_t axis = 0; axis < wanted.size(); ++axis) {
        const Dim& dim = wanted[axis];
        if (dim == Dim(0)) return std::nullopt;
        if (dim.known()) {
            shape.push_back(dim.value);
        } else if (from->type.shape && axis < from->type.shape->size() && (*from->type.shape)[axis] == dim) {
            shape.push_back(0);
        } else {
            if (inferred) return std::nullopt;
            inferred = true;
            shape.push_back(-1);
        }
    }
    return shape;
}

bool is_plain(const Graph& graph, const Node& node) {
    return node.is("Reshape") && constant_of(graph, node.input(1)) != nullptr;
}

// The start of the chain of reshapes that ends in `node`; other readers of the links keep them alive.
Value* source(const Node& node) {
    Value* x = node.input(0);
    while (x->producer() != nullptr && is_any(*x->producer(), kReshapes)) x = x->producer()->input(0);
    return x;
}

bool become_reshape(Graph& graph, Node& node, Value* x, const std::vector<int64_t>& shape) {
    Node* reshape = replace_with(graph, node.output(), "Reshape", {x, add_ints(graph, shape)});
    reshape->origins.clear();  // nothing was fused: the operator that stays has the name
    return true;
}

}  // namespace

//! A Reshape whose computed shape is known, up to one dimension or copied ones, gets a constant shape: the
//! shape arithmetic dies.
bool simplify_reshapes(Graph& graph) {
    return rewrite(graph, kReshapes, [](Graph& g, Node& node) {
        Value* x = source(node);
        if (x == node.input(0) && (is_plain(g, node) || !node.is("Reshape"))) return false;
        if (const auto shape = target(x, node.output())) return become_reshape(g, node, x, *shape);
        if (x == node.input(0) || !is_plain(g, node)) return false;
        // A constant shape without copied entries means the same whatever the input's shape is.
        const std::vector<int64_t> shape = constant_of(g, node.input(1))->to_ints();
        if (std::ranges::find(shape, 0) != shape.end()) return false;
        return become_reshape(g, node, x, shape);
    });
}

}  // namespace kilter
