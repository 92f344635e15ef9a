// Mul, Div, Add and Sub by a constant, one for all or one per channel, behind a convolution or matrix product
// move into its weights and bias. This also folds a batch normalization that was spelled out as Sub, Div, Mul
// and Add.
#include <algorithm>

#include "passes/channel_affine.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

std::optional<ChannelAffine> affine_of(const Node& node, const std::vector<double>& constant,
                                       bool constant_first) {
    if (node.is("Mul")) return ChannelAffine{constant, {0.0}};
    if (node.is("Add")) return ChannelAffine{{1.0}, constant};
    std::vector<double> changed;
    if (node.is("Sub")) {
        if (constant_first) return ChannelAffine{{-1.0}, constant};
        for (const double number : constant) changed.push_back(-number);
        return ChannelAffine{{1.0}, changed};
    }
    if (constant_first || std::ranges::find(constant, 0.0) != constant.end()) return std::nullopt;
    for (const double number : constant) changed.push_back(1.0 / number);
    return ChannelAffine{changed, {0.0}};
}

// The operator that makes `value`, looking through single readers that only move elements when `through` is
// set.
Node* maker(const Graph& graph, const Value* value, bool through) {
    while (value != nullptr && graph.has_single_use(value) && value->producer() != nullptr) {
        Node* node = value->producer();
        if (has_channels(*node)) return node;
        if (!through || !is_any(*node, {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"}))
            return nullptr;
        value = node->input(0);
    }
    return nullptr;
}

// Added to a result without bias, one number per channel is the bias as it stands: nothing is copied.
bool add_as_bias(Graph& graph, Node& before, const Node& node, Value* constant) {
    const Tensor& tensor = *constant_of(graph, constant);
    if (!node.is("Add") || before.input(2) != nullptr || tensor.dtype() != before.output()->type.dtype)
        return false;
    if (tensor.size() != channel_count(graph, before)) return false;
    const bool flat = tensor.rank() == 1;
    graph.set_input(
        before, 2,
        flat ? constant
             : graph.add_constant(tensor.reshaped({tensor.size()}), graph.fresh_name(constant->name())));
    return true;
}

bool fold(Graph& graph, Node& node, size_t constant_index) {
    Value* constant = node.input(constant_index);
    Value* y = node.input(1 - constant_index);
    if (constant_of(graph, constant) == nullptr || constant_of(graph, y) != nullptr) return false;
    const bool scalar = scalar_beside(graph, constant, y).has_value();
    Node* before = maker(graph, y, scalar);
    if (before == nullptr) return false;
    const auto numbers = scalar ? std::optional(std::vector<double>{*scalar_beside(graph, constant, y)})
                                : channel_constant(graph, constant, *before);
    if (!numbers) return false;
    const auto affine = affine_of(node, *numbers, constant_index == 0);
    if (!affine) return false;
    if (!add_as_bias(graph, *before, node, constant) && !absorb_affine(graph, *before, *affine)) return false;
    if (y == before->output()) {
        take_over(graph, *before, node);
    } else {
        add_origins(*before, node);
        substitute(graph, node.output(), y);
    }
    return true;
}

}  // namespace

//! Exact up to rounding; needs constant weights where they are scaled, and no other reader of what is scaled
//! or shifted.
bool fold_scale_shift(Graph& graph) {
    return rewrite(graph, {"Mul", "Div", "Add", "Sub"},
                   [](Graph& g, Node& node) { return fold(g, node, 1) || fold(g, node, 0); });
}

}  // namespace kilter
