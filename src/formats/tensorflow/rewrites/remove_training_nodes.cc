// Nodes that pass their input on, or that only training and debugging ask for.
#include <algorithm>
#include <array>

#include "formats/tensorflow/rewrites/rewrites.h"

namespace kilter::tensorflow {
namespace {

constexpr std::array<std::string_view, 6> kPassing{"Identity", "CheckNumerics",   "StopGradient",
                                                   "Snapshot", "PreventGradient", "Print"};

bool has_control_inputs(const TfNode& node) { return node.data_inputs() != node.inputs.size(); }

// Is `node` read by a control input? Then its place in the order of execution matters.
std::unordered_set<std::string> controlling(const TfGraph& graph) {
    std::unordered_set<std::string> names;
    for (const auto& node : graph.nodes())
        for (const TfInput& input : node->inputs)
            if (input.control) names.insert(input.node);
    return names;
}

// Asserts stop a program; they compute nothing. What waited for them does not any more.
int drop_asserts(TfGraph& graph, const Wanted& wanted) {
    std::vector<const TfNode*> asserts;
    std::unordered_set<std::string> names;
    for (const auto& node : graph.nodes()) {
        if (node->op != "Assert" || wanted.contains(node->name)) continue;
        asserts.push_back(node.get());
        names.insert(node->name);
    }
    for (const auto& node : graph.nodes())
        std::erase_if(node->inputs,
                      [&](const TfInput& input) { return input.control && names.contains(input.node); });
    graph.remove(asserts);
    return static_cast<int>(asserts.size());
}

// False at inference: a constant, or Keras' learning phase that nobody feeds.
std::optional<bool> condition(const TfGraph& graph, const TfInput& input,
                              std::span<const std::string> inputs) {
    const TfNode* node = graph.producer(input);
    for (size_t steps = 0; node != nullptr && node->op == "Identity" && steps < graph.size(); ++steps)
        node = node->inputs.empty() ? nullptr : graph.producer(node->inputs[0]);
    if (node == nullptr) return std::nullopt;
    const bool fed = std::ranges::any_of(
        inputs, [&](const std::string& text) { return TfInput(text).node == node->name; });
    if (fed) return std::nullopt;
    if (node->op.starts_with("Placeholder") && node->name.ends_with("keras_learning_phase")) return false;
    if (node->op == "Switch" && !node->inputs.empty()) return condition(graph, node->inputs[0], inputs);
    if (node->op != "Const") return std::nullopt;
    const Tensor value = node->attributes.get_tensor("value").decode();
    if (value.dtype() != DType::boolean || value.size() != 1) return std::nullopt;
    return value.to_ints()[0] != 0;
}

// Switch(x, constant) passes x on to one side; the Merge that joins the sides takes it from there.
int resolve_switches(TfGraph& graph, std::span<const std::string> inputs, const Wanted& wanted) {
    std::unordered_set<std::string> dead;  // tensors that no run computes, as texts
    int count = 0;
    for (TfNode* node : graph.sorted()) {
        const auto is_dead = [&](const TfInput& input) { return dead.contains(input.text()); };
        if (node->op == "Merge" && std::ranges::any_of(node->inputs, is_dead)) {
            const auto alive = std::ranges::find_if_not(node->inputs, is_dead);
            if (alive == node->inputs.end()) continue;
            graph.replace_uses(TfInput::of(node->name), *alive);
            if (wanted.contains(node->name)) {
                const TfType type = node->attributes.get_type("T", kFloat);
                const TfInput source = *alive;
                node->op = "Identity";
                node->inputs = {source};
                node->attributes = {};
                node->attributes.set("T", type);
            }
            ++count;
        } else if (node->op == "Switch" && node->data_inputs() == 2) {
            const std::optional<bool> taken = condition(graph, node->inputs[1], inputs);
            if (!taken) continue;
            const int live = *taken ? 1 : 0;
            dead.insert(TfInput::of(node->name, 1 - live).text());
            graph.replace_uses(TfInput::of(node->name, live), node->inputs[0]);
            if (live == 1)  // control inputs follow the first output only
                for (const auto& reader : graph.nodes())
                    std::erase_if(reader->inputs, [&](const TfInput& input) {
                        return input.control && input.node == node->name;
                    });
            ++count;
        } else if (std::ranges::any_of(node->inputs, is_dead)) {
            dead.insert(TfInput::of(node->name).text());
        }
    }
    return count;
}

}  // namespace

int remove_training_nodes(TfGraph& graph, std::span<const std::string> inputs, const Wanted& wanted) {
    int count = drop_asserts(graph, wanted) + resolve_switches(graph, inputs, wanted);
    const std::unordered_set<std::string> waited_for = controlling(graph);
    std::unordered_map<std::string, TfInput> instead;  // what readers of a passing node read from now on
    std::vector<const TfNode*> passing;
    for (const TfNode* node : graph.sorted()) {
        if (std::ranges::find(kPassing, node->op) == kPassing.end() || node->inputs.empty() ||
            node->inputs[0].control || has_control_inputs(*node) || wanted.contains(node->name) ||
            waited_for.contains(node->name))
            continue;
        TfInput source = node->inputs[0];
        const auto before = instead.find(source.node);
        if (before != instead.end() && source.port == 0) source = before->second;
        instead.emplace(node->name, source);
        passing.push_back(node);
    }
    for (const auto& node : graph.nodes())
        for (TfInput& input : node->inputs) {
            const auto found = instead.find(input.node);
            if (found != instead.end() && !input.control && input.port == 0) input = found->second;
        }
    graph.remove(passing);
    return count + static_cast<int>(passing.size());
}

}  // namespace kilter::tensorflow
