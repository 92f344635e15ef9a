// If with a constant condition: the chosen branch moves into the enclosing graph.
#include <unordered_map>

#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

using ValueMap = std::unordered_map<const Value*, Value*>;

// Moves the nodes of `body`, which is left empty-handed, into `graph`; returns where each of its values went.
ValueMap move_nodes(Graph& graph, Graph& body) {
    ValueMap moved;
    for (Value* capture : body.captures()) moved[capture] = capture->outer();
    for (Value* value : body.constants())
        moved[value] = graph.add_constant(*body.constant(value), graph.fresh_name(value->name()));
    // A value that is not of the branch was already replaced by the one it moved to.
    const auto target = [&](Value* value) {
        const auto entry = moved.find(value);
        return entry == moved.end() ? value : entry->second;
    };
    body.sort();
    for (const auto& node : body.nodes()) {
        std::vector<Value*> inputs;
        std::vector<Value*> outputs;
        for (Value* value : node->inputs()) inputs.push_back(target(value));
        for (const Value* value : node->outputs()) {
            outputs.push_back(
                value == nullptr ? nullptr : graph.add_value(graph.fresh_name(value->name()), value->type));
            if (value != nullptr) moved[value] = outputs.back();
        }
        Attributes attributes = std::move(node->attributes);
        node->attributes = {};
        body.set_inputs(*node, {});
        graph.update_captures(*node);  // forgets what its sub-graphs captured from `graph` meanwhile
        Node* copy = graph.add_node(node->op(), std::move(inputs), std::move(outputs), std::move(attributes),
                                    node->name, node->domain());
        copy->doc = node->doc;
        copy->overload = node->overload;
        copy->origins = node->origins;
        copy->foreign = node->foreign;
        // Nested sub-graphs captured values of the branch; now they capture those of `graph`.
        for (Graph* nested : copy->subgraphs())
            for (const Value* inner : nested->captures())
                body.replace_uses(inner->outer(), target(inner->outer()));
        if (!copy->subgraphs().empty()) graph.update_captures(*copy);
    }
    return moved;
}

}  // namespace

//! Exact: only operators of the chosen branch would have run.
bool inline_constant_if(Graph& graph) {
    return rewrite(graph, "If", [](Graph& g, Node& node) {
        const Tensor* condition = constant_of(g, node.input(0));
        if (condition == nullptr || condition->size() != 1) return false;
        const std::shared_ptr<Graph> branch =
            node.attributes.get_graph(condition->to_ints().front() != 0 ? "then_branch" : "else_branch");
        std::vector<Value*> results;
        for (const Graph::Output& output : branch->outputs()) results.push_back(output.value);
        const ValueMap moved = move_nodes(g, *branch);
        for (size_t i = 0; i < node.outputs().size(); ++i)
            if (node.output(i) != nullptr) substitute(g, node.output(i), moved.at(results.at(i)));
        node.attributes = {};
        g.update_captures(node);
        return true;
    });
}

}  // namespace kilter
