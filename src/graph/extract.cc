#include "graph/extract.h"

#include <unordered_map>

#include "base/fail.h"

namespace kilter {

std::vector<Value*> values_read(const Node& node) {
    std::vector<Value*> values;
    for (Value* value : node.inputs())
        if (value != nullptr) values.push_back(value);
    for (const Graph* body : node.subgraphs())
        for (const Value* inner : body->captures())
            if (inner->outer() != nullptr) values.push_back(inner->outer());
    return values;
}

const Value* origin(const Value* value) {
    while (value != nullptr && value->outer() != nullptr) value = value->outer();
    return value;
}

Graph extract(const Graph& graph, const std::vector<const Node*>& nodes,
              const std::vector<const Value*>& inputs, const std::vector<const Value*>& outputs) {
    Graph part;
    part.name = graph.name;
    std::unordered_map<const Value*, Value*> map;
    for (const Value* value : inputs) map.emplace(value, part.add_input(value->name(), value->type));
    const auto mapped = [&](const Value* value) -> Value* {
        if (value == nullptr) return nullptr;
        if (const auto found = map.find(value); found != map.end()) return found->second;
        const Tensor* constant = graph.constant(origin(value));
        Value* twin = constant != nullptr ? part.add_constant(*constant, value->name())
                                          : part.add_value(value->name(), value->type);
        map.emplace(value, twin);
        return twin;
    };
    for (const Node* node : nodes) {
        std::vector<Value*> node_inputs;
        std::vector<Value*> node_outputs;
        for (const Value* value : node->inputs()) node_inputs.push_back(mapped(value));
        for (const Value* value : node->outputs()) node_outputs.push_back(mapped(value));
        Attributes attributes = node->attributes;
        const auto copy_body = [&](std::shared_ptr<Graph>& body) {
            body = std::make_shared<Graph>(body->clone());
            for (Value* inner : body->captures()) body->bind_capture(inner, mapped(inner->outer()));
        };
        for (auto& [name, value] : attributes) {
            if (auto* body = std::get_if<std::shared_ptr<Graph>>(&value)) copy_body(*body);
            if (auto* bodies = std::get_if<std::vector<std::shared_ptr<Graph>>>(&value))
                for (auto& body : *bodies) copy_body(body);
        }
        Node* twin = part.add_node(node->op(), std::move(node_inputs), std::move(node_outputs),
                                   std::move(attributes), node->name, node->domain());
        twin->origins = node->origins;
    }
    for (const Value* value : outputs) part.add_output(mapped(value), value->name());
    return part;
}

}  // namespace kilter
