#include "quantization/eligibility.h"

#include <fmt/format.h>

#include "kilter/quantization/plan.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

// 255 · 127 · this many still fit into int32 (docs/arithmetic.md, "Products").
constexpr int64_t kLongestSum = 66311;

// Rows: what a smaller table saves is less than what converting its rows costs.
constexpr int64_t kSmallestTable = 64;

bool is_convolution(std::string_view type) { return type == "Conv" || type == "ConvTranspose"; }

std::string why_not_product(const Graph& graph, const Node& node) {
    if (is_convolution(public_type(node)) && graph.constant(node.input(1)) == nullptr)
        return "its weights are computed while the model runs";
    if (graph.constant(node.input(0)) != nullptr) return "its first operand is a constant";
    if (node.input(1)->type.dtype != DType::f32) return "its second operand is not f32";
    if (public_type(node) == "MatMul" && !node.is_kilter("MatMul"))
        return "its operands are not known to be matrices";
    if (public_type(node) == "MatMul" && (rank_of(node.input(0)) < 2 || rank_of(node.input(1)) < 2))
        return "its operands are not known to be matrices";
    const int64_t length = reduction_length(graph, node);
    if (length > kLongestSum) return fmt::format("sums of {} products could overflow int32", length);
    return {};
}

std::string why_not_binary(const Graph& graph, const Node& node) {
    if (node.inputs().size() != 2) return "it does not have two operands";
    for (const Value* input : node.inputs()) {
        if (graph.constant(input) != nullptr) return "one operand is a constant";
        if (input->type.dtype != DType::f32) return "its operands are not f32";
    }
    return {};
}

std::string why_not_pad(const Graph& graph, const Node& node) {
    if (node.attributes.get_string("mode", "constant") != "constant") return {};
    if (node.input(2) == nullptr || scalar_of(graph, node.input(2)) == 0.0) return {};
    return "it pads with something else than zero";
}

std::string why_not_table(const Node& node, const Tensor& table) {
    if (table.rank() != 2 || node.attributes.get_int("axis") != 0)
        return "it does not look up rows of a matrix";
    if (table.dim(0) < kSmallestTable) return "its table is small";
    return {};
}

std::string why_not_attached(const Graph& graph, const Node& node) {
    for (size_t i = 1; i < node.inputs().size(); ++i)
        if (node.input(i) != nullptr && graph.constant(node.input(i)) == nullptr)
            return "its limits are computed";
    const Value* x = node.input(0);
    if (x->producer() == nullptr || !graph.has_single_use(x)) return "others read what it reads";
    const Capability* can = find_capability(public_type(*x->producer()));
    const bool computes = can != nullptr && (can->role == Role::must || can->role == Role::eligible);
    return computes && why_not(graph, *x->producer()).empty() ? "" : "what it follows has no integer kernel";
}

std::string why_not_type(const Graph& graph, const Node& node) {
    const std::string_view type = public_type(node);
    if (is_convolution(type) || type == "MatMul") return why_not_product(graph, node);
    if (type == "Add" || type == "Mul") return why_not_binary(graph, node);
    if (type == "Pad") return why_not_pad(graph, node);
    if (is_attached(node)) return why_not_attached(graph, node);
    if (type == "Resize" && node.attributes.get_string("mode", "nearest") != "nearest")
        return "it interpolates";
    if (type == "MaxPool" && node.output(1) != nullptr) return "it returns indices";
    if (type == "Embedding") return why_not_table(node, *graph.constant(node.input(0)));
    if (type == "Attention")
        for (size_t i = 0; i < 3; ++i)
            if (graph.constant(node.input(i)) != nullptr) return "one operand is a constant";
    if (type == "Concat") {
        for (const Value* input : node.inputs())
            if (graph.constant(input) == nullptr) return {};
        return "it joins constants";
    }
    return {};
}

}  // namespace

std::string why_not(const Graph& graph, const Node& node) {
    if (find_capability(public_type(node)) == nullptr) return "there is no integer kernel for its type";
    const Value* x = node.input(0);
    if (x == nullptr || node.output() == nullptr) return "its main input or output is absent";
    if (x->type.dtype != DType::f32 || node.output()->type.dtype != DType::f32)
        return fmt::format("it works on {}", name(x->type.dtype));
    if (std::string reason = why_not_type(graph, node); !reason.empty()) return reason;
    const std::string_view type = public_type(node);
    if (graph.constant(x) != nullptr && type != "Concat" && type != "Embedding")
        return "its input is a constant";
    return {};
}

bool is_attached(const Node& node) {
    const Capability* can = find_capability(public_type(node));
    return can != nullptr && can->role == Role::attached;
}

std::unordered_set<const Node*> without_products_around(const Graph& graph,
                                                        const std::unordered_set<const Node*>& on_integers) {
    std::unordered_set<const Node*> above, below;  // have a product on the way from, or to, the node
    const auto role = [](const Node* node) { return find_capability(public_type(*node))->role; };
    const auto is_product = [&](const Node* node) { return role(node) == Role::must; };
    const auto leads = [&](const Node* node, const std::unordered_set<const Node*>& reached) {
        return node != nullptr && on_integers.contains(node) && (is_product(node) || reached.contains(node));
    };
    const auto& nodes = graph.nodes();
    for (const auto& node : nodes)
        if (on_integers.contains(node.get()))
            for (const Value* input : node->inputs())
                if (input != nullptr && leads(input->producer(), above)) above.insert(node.get());
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
        if (on_integers.contains(node->get()))
            for (const Value* output : (*node)->outputs())
                if (output != nullptr)
                    for (const Node* user : output->users())
                        if (leads(user, below)) below.insert(node->get());
    std::unordered_set<const Node*> lonely;
    for (const Node* node : on_integers)
        if (!is_product(node) && role(node) != Role::table && !(above.contains(node) && below.contains(node)))
            lonely.insert(node);
    return lonely;
}

std::string plan_name(const Node& node) {
    if (!node.name.empty()) return node.name;
    for (const Value* output : node.outputs())
        if (output != nullptr) return output->name();
    return {};
}

std::unordered_map<const Node*, std::string> plan_names(const Graph& graph) {
    std::unordered_map<std::string, int> used;
    std::unordered_map<const Node*, std::string> names;
    for (const auto& node : graph.nodes()) {
        const std::string name = plan_name(*node);
        const int occurrence = ++used[name];
        names[node.get()] = occurrence == 1 ? name : fmt::format("{}#{}", name, occurrence);
    }
    return names;
}

int weights_index(const Graph& graph, const Node& node) {
    const std::string_view type = public_type(node);
    if (!is_convolution(type) && type != "MatMul") return -1;
    return graph.constant(node.input(1)) != nullptr ? 1 : -1;
}

int weights_axis(const Graph& graph, const Node& node) {
    const Tensor* weights = graph.constant(node.input(1));
    if (weights == nullptr) return -1;
    if (public_type(node) == "Conv") return 0;
    if (public_type(node) == "ConvTranspose") {
        // Channels of all groups lie on two axes, unless one of the two has a single position.
        if (node.attributes.get_int("group", 1) == 1) return 1;
        return weights->dim(1) == 1 ? 0 : -1;
    }
    if (weights->rank() != 2) return -1;
    const bool transposed = node.attributes.get_int("trans_b") != 0;
    return transposed ? 0 : 1;
}

int64_t reduction_length(const Graph& graph, const Node& node) {
    if (const Tensor* weights = graph.constant(node.input(1))) {
        const int axis = weights_axis(graph, node);
        const int64_t channels = axis < 0 ? 1 : weights->dim(axis);
        if (weights->rank() > 2 && public_type(node) == "MatMul") return weights->dim(-2);
        return channels == 0 ? 0 : weights->size() / channels;
    }
    return 0;
}

}  // namespace kilter
