#include "engine/quantized_values.h"

#include <array>
#include <optional>

namespace kilter::engine {
namespace {

using Maps = std::unordered_map<const Value*, AffineMap>;

// Pairs of QuantizeLinear and DequantizeLinear for whole tensors.
std::optional<AffineMap> from_constants(const Graph& graph, const Node& node) {
    const Tensor* scale = graph.constant(node.input(1));
    const Tensor* zero_point = graph.constant(node.input(2));
    if (scale == nullptr || scale->size() != 1) return std::nullopt;
    AffineMap map{static_cast<float>(scale->to_doubles()[0]), 0};
    if (zero_point != nullptr) map.zero_point = static_cast<int64_t>(zero_point->to_doubles()[0]);
    return map;
}

// What kilter's integer operators say about their inputs: <letter>_scale and <letter>_zero_point.
void from_readers(const Node& node, Maps& maps) {
    const std::array<std::string_view, 3> letters = node.op() == "QAttention"
                                                        ? std::array<std::string_view, 3>{"q", "k", "v"}
                                                        : std::array<std::string_view, 3>{"a", "b", "c"};
    const bool single = node.attributes.has("x_scale");
    for (size_t i = 0; i < (single ? 1 : letters.size()); ++i) {
        const std::string letter(single ? "x" : letters[i]);
        const Value* input = node.input(i);
        const AttributeValue* scale = node.attributes.find(letter + "_scale");
        if (input == nullptr || input->is_constant() || scale == nullptr) continue;
        const auto* one = std::get_if<float>(scale);
        const auto* many = std::get_if<std::vector<float>>(scale);
        if (one == nullptr && (many == nullptr || many->size() != 1)) continue;
        const float value = one != nullptr ? *one : many->front();
        maps.emplace(input, AffineMap{value, node.attributes.get_int(letter + "_zero_point")});
    }
}

void from_node(const Graph& graph, const Node& node, Maps& maps) {
    if (node.is("QuantizeLinear") || node.is("DequantizeLinear")) {
        const auto map = from_constants(graph, node);
        if (map) maps[node.is("QuantizeLinear") ? node.output() : node.input(0)] = *map;
        return;
    }
    if (node.domain() != kKilterDomain || !node.op().starts_with('Q')) return;
    const AffineMap result{node.attributes.get_float("y_scale", 1.0F),
                           node.attributes.get_int("y_zero_point")};
    if (node.attributes.has("y_scale"))
        for (const Value* output : node.outputs())
            if (output != nullptr) maps[output] = result;
    from_readers(node, maps);
}

// Operators of the default domain that yield integers only move them.
bool moves_integers(const Node& node) {
    return node.domain().empty() && node.input(0) != nullptr && node.output() != nullptr &&
           !node.is("QuantizeLinear") && !node.is("DequantizeLinear") &&
           node.input(0)->type.dtype == node.output()->type.dtype;
}

}  // namespace

Maps affine_maps(const Graph& graph) {
    Maps maps;
    for (const auto& node : graph.nodes()) from_node(graph, *node, maps);
    const auto copy = [&](const Value* from, const Value* to) {
        if (const auto found = maps.find(from); found != maps.end())
            maps.emplace(to, AffineMap(found->second));
    };
    for (const auto& node : graph.nodes())
        if (moves_integers(*node))
            for (const Value* output : node->outputs())
                if (output != nullptr) copy(node->input(0), output);
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node)
        if (moves_integers(**node)) copy((*node)->output(), (*node)->input(0));
    return maps;
}

}  // namespace kilter::engine
