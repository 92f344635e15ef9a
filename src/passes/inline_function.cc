#include "passes/inline_function.h"

#include <unordered_map>

#include "base/fail.h"

namespace kilter {
namespace {

// Gives every attribute reference inside `graph` its value; one that nobody gave a value is an absent
// attribute.
void bind_attributes(Graph& graph, const Attributes& given, const Attributes& defaults) {
    for (const auto& node : graph.nodes()) {
        std::vector<std::string> absent;
        for (auto& [name, value] : node->attributes) {
            const auto* reference = std::get_if<AttributeReference>(&value);
            if (reference == nullptr) continue;
            const AttributeValue* bound = given.find(reference->name);
            if (bound == nullptr) bound = defaults.find(reference->name);
            if (bound == nullptr) {
                absent.push_back(name);
                continue;
            }
            value = AttributeValue(*bound);
        }
        for (const std::string& name : absent) node->attributes.erase(name);
        for (Graph* body : node->subgraphs()) bind_attributes(*body, given, defaults);
    }
}

// The call left out an optional input that a sub-graph captures: its readers get an absent input too.
void drop_capture(Graph& graph, Value* capture) {
    require(!graph.is_output(capture), "returns the input '{}', which the call does not give",
            capture->name());
    for (Node* user : std::vector<Node*>(capture->users())) {
        for (size_t i = 0; i < user->inputs().size(); ++i)
            if (user->input(i) == capture) graph.set_input(*user, i, nullptr);
        for (Graph* body : user->subgraphs())
            for (Value* inner : std::vector<Value*>(body->captures().begin(), body->captures().end()))
                if (inner->outer() == capture) drop_capture(*body, inner);
        if (!user->subgraphs().empty()) graph.update_captures(*user);
    }
    graph.remove_value(capture);
}

}  // namespace

std::vector<Node*> inline_function(Graph& graph, Node& call, const Function& function) {
    Graph body = function.body.clone();
    bind_attributes(body, call.attributes, function.defaults);
    const std::string prefix = call.name.empty() ? function.name : call.name;
    const auto inner_name = [&](const std::string& name) {
        return name.empty() ? name : prefix + "/" + name;
    };
    require(call.inputs().size() <= body.inputs().size(), "{}: {} inputs are given, the function takes {}",
            describe(call), call.inputs().size(), body.inputs().size());
    require(call.outputs().size() <= body.outputs().size(),
            "{}: {} outputs are asked for, the function has {}", describe(call), call.outputs().size(),
            body.outputs().size());

    std::unordered_map<const Value*, Value*> twins;  // values of the body to values of the graph
    for (size_t i = 0; i < body.inputs().size(); ++i) twins.emplace(body.inputs()[i], call.input(i));
    for (Value* value : body.constants())
        twins.emplace(value,
                      graph.add_constant(*body.constant(value), graph.fresh_name(inner_name(value->name()))));

    // The results of the call become results of the body's nodes, or of an Identity where no node makes them.
    std::vector<std::pair<Value*, Value*>> passed;
    for (size_t i = 0; i < call.outputs().size(); ++i) {
        Value* result = call.output(i);
        if (result == nullptr) continue;
        graph.set_output(call, i, nullptr);
        Value* made = body.outputs()[i].value;
        if (made->producer() == nullptr || !twins.emplace(made, result).second)
            passed.emplace_back(made, result);
    }

    std::vector<Node*> added;
    for (const auto& node : body.nodes()) {
        std::vector<Value*> inputs;
        std::vector<Value*> outputs;
        for (const Value* value : node->inputs())
            inputs.push_back(value == nullptr ? nullptr : twins.at(value));
        for (const Value* value : node->outputs()) {
            if (value == nullptr) {
                outputs.push_back(nullptr);
                continue;
            }
            Value*& twin = twins[value];
            if (twin == nullptr)
                twin = graph.add_value(graph.fresh_name(inner_name(value->name())), value->type);
            outputs.push_back(twin);
        }
        for (Graph* inner : node->subgraphs()) {
            for (Value* capture : std::vector<Value*>(inner->captures().begin(), inner->captures().end())) {
                Value* outer = twins.at(capture->outer());
                if (outer != nullptr)
                    inner->set_outer(capture, outer);
                else
                    drop_capture(*inner, capture);
            }
        }
        Node* twin = graph.add_node(node->op(), std::move(inputs), std::move(outputs),
                                    std::move(node->attributes), inner_name(node->name), node->domain());
        twin->doc = node->doc;
        twin->overload = node->overload;
        twin->foreign = node->foreign;
        added.push_back(twin);
    }
    for (const auto& [made, result] : passed) {
        Value* source = twins.at(made);
        require(source != nullptr, "{}: returns the input '{}', which the call does not give", describe(call),
                made->name());
        added.push_back(graph.add_node("Identity", {source}, {result}, {}, prefix));
    }
    return added;
}

}  // namespace kilter
