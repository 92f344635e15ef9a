// Products of one input with several constant weights (query, key and value of attention) become one product
// and a Split. One large product keeps the kernel busy where three small ones wait for each other.
#include <algorithm>
#include <cstring>

#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

bool is_mergeable(const Graph& graph, const Node& node, const Node& like) {
    if (!node.is_kilter("MatMul") || node.input(0) != like.input(0) || node.attributes.has("post_ops"))
        return false;
    for (const std::string_view flag : {"trans_a", "trans_b"})
        if (node.attributes.get_int(flag) != like.attributes.get_int(flag)) return false;
    if (node.attributes.get_float("alpha", 1.0F) != like.attributes.get_float("alpha", 1.0F)) return false;
    const Tensor* weights = constant_of(graph, node.input(1));
    const Tensor* bias = constant_of(graph, node.input(2));
    if (weights == nullptr || weights->rank() != 2 || weights->dtype() != DType::f32) return false;
    if (node.input(2) != nullptr && (bias == nullptr || bias->dtype() != DType::f32)) return false;
    if (graph.is_output(node.output())) return false;
    return std::ranges::all_of(node.output()->users(), [](const Node* user) {
        return is_any(*user, {"Reshape", "Transpose", "kilter.Attention"});
    });
}

int64_t columns(const Graph& graph, const Node& node) {
    return constant_of(graph, node.input(1))->dim(node.attributes.get_int("trans_b") != 0 ? 0 : 1);
}

Tensor joined_weights(const Graph& graph, const std::vector<Node*>& nodes, int64_t total) {
    const bool transposed = nodes[0]->attributes.get_int("trans_b") != 0;
    const int64_t depth = constant_of(graph, nodes[0]->input(1))->dim(transposed ? 1 : 0);
    Tensor joined(DType::f32, transposed ? Shape{total, depth} : Shape{depth, total});
    // Row by row for [K, N]; the transposed [N, K] are simply one behind the other.
    const int64_t rows = transposed ? 1 : depth;
    float* to = joined.as_mutable<float>().data();
    for (int64_t row = 0; row < rows; ++row)
        for (const Node* node : nodes) {
            const auto from = constant_of(graph, node->input(1))->as<float>();
            const size_t length = from.size() / static_cast<size_t>(rows);
            std::memcpy(to, from.data() + static_cast<size_t>(row) * length, length * sizeof(float));
            to += length;
        }
    return joined;
}

Tensor joined_bias(const Graph& graph, const std::vector<Node*>& nodes) {
    std::vector<float> joined;
    for (const Node* node : nodes) {
        const Tensor* bias = constant_of(graph, node->input(2));
        for (int64_t i = 0; i < columns(graph, *node); ++i)
            joined.push_back(
                bias == nullptr ? 0.0F : bias->as<float>()[bias->size() == 1 ? 0 : static_cast<size_t>(i)]);
    }
    return Tensor::of<float>({static_cast<int64_t>(joined.size())}, joined);
}

bool merge(Graph& graph, const std::vector<Node*>& nodes) {
    std::vector<int64_t> sizes;
    int64_t total = 0;
    bool has_bias = false;
    for (const Node* node : nodes) {
        sizes.push_back(columns(graph, *node));
        total += sizes.back();
        has_bias = has_bias || node->input(2) != nullptr;
    }
    Node& first = *nodes[0];
    std::vector<Value*> inputs{first.input(0), graph.add_constant(joined_weights(graph, nodes, total))};
    if (has_bias) inputs.push_back(graph.add_constant(joined_bias(graph, nodes)));
    ValueType type = first.output()->type;
    if (type.shape) type.shape->back() = Dim(total);
    Value* product = graph.add_value(graph.fresh_name(first.output()->name()), type);
    Node* merged =
        graph.add_node("MatMul", std::move(inputs), {product}, first.attributes, first.name, kKilterDomain);
    std::vector<Value*> parts;
    for (Node* node : nodes) {
        add_origins(*merged, *node);
        parts.push_back(node->output());
        graph.set_output(*node, 0, nullptr);
        graph.set_inputs(*node, {});
    }
    Attributes attributes;
    attributes.set("axis", int64_t{-1});
    graph.add_node("Split", {product, add_ints(graph, sizes)}, std::move(parts), std::move(attributes));
    return true;
}

}  // namespace

//! Only where the results are rearranged anyway, so that the Split costs nothing extra.
bool merge_parallel_matmuls(Graph& graph) {
    return rewrite(graph, "kilter.MatMul", [](Graph& g, Node& node) {
        if (!is_mergeable(g, node, node)) return false;
        std::vector<Node*> siblings;
        for (Node* user : node.input(0)->users())
            if (is_mergeable(g, *user, node) && std::ranges::find(siblings, user) == siblings.end())
                siblings.push_back(user);
        return siblings.size() > 1 && merge(g, siblings);
    });
}

}  // namespace kilter
