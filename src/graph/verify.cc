#include "graph/verify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"

namespace kilter {
namespace {

using ValueSet = std::unordered_set<const Value*>;

void verify_sources(const Value& value) {
    const int sources = (value.is_input() ? 1 : 0) + (value.is_constant() ? 1 : 0) +
                        (value.producer() != nullptr ? 1 : 0) + (value.outer() != nullptr ? 1 : 0);
    require(sources <= 1,
            "value '{}' has several sources: it can be only one of input, constant, captured or computed",
            value.name());
    const bool used = !value.users().empty();
    require(sources == 1 || !used, "value '{}' is read by {} but nothing computes it", value.name(),
            used ? describe(*value.users().front()) : "");
}

void verify_constant(const Graph& graph, const Value& value) {
    const Tensor* tensor = graph.constant(&value);
    if (tensor == nullptr || value.type.dtype == DType::undefined) return;
    const ValueType own = ValueType::of(*tensor);
    require(own.dtype == value.type.dtype, "constant '{}' is declared {} but holds {}", value.name(),
            to_string(value.type), to_string(own));
    if (!value.type.shape) return;
    bool fits = own.shape->size() == value.type.shape->size();
    for (size_t i = 0; fits && i < own.shape->size(); ++i)
        fits = !(*value.type.shape)[i].known() || (*value.type.shape)[i].value == (*own.shape)[i].value;
    require(fits, "constant '{}' is declared {} but holds {}", value.name(), to_string(value.type),
            to_string(own));
}

void verify_values(const Graph& graph) {
    for (const Value* value : graph.values()) {
        require(!value->name().empty(), "a value has no name");
        require(graph.find(value->name()) == value, "two values are named '{}'", value->name());
        verify_sources(*value);
        verify_constant(graph, *value);
    }
    for (const Value* input : graph.inputs())
        require(input->is_input(), "value '{}' is listed as an input but is none", input->name());
}

void verify_links(const Node& node, const ValueSet& own) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
        const Value* value = node.input(i);
        if (value == nullptr) continue;
        require(own.contains(value), "input {} is a value of another graph", i);
        const auto& users = value->users();
        require(std::ranges::find(users, &node) != users.end(),
                "value '{}' does not know that it is read here", value->name());
    }
    for (size_t i = 0; i < node.outputs().size(); ++i) {
        const Value* value = node.output(i);
        if (value == nullptr) continue;
        require(own.contains(value), "output {} is a value of another graph", i);
        require(value->producer() == &node && value->producer_index() == static_cast<int>(i),
                "value '{}' does not know that it is output {} here", value->name(), i);
    }
}

void verify_subgraphs(const Graph& graph, const Node& node, const ValueSet& own) {
    for (const auto& [name, value] : node.attributes) {
        if (const auto* body = std::get_if<std::shared_ptr<Graph>>(&value))
            require(*body != nullptr, "attribute '{}' holds no graph", name);
    }
    for (const Graph* body : node.subgraphs()) {
        require(body != nullptr, "a list of graphs holds an empty entry");
        for (const Value* capture : body->captures()) {
            require(capture->outer() != nullptr && own.contains(capture->outer()),
                    "its sub-graph captures '{}', which is not a value of the graph around it",
                    capture->name());
            const auto& users = capture->outer()->users();
            require(std::ranges::find(users, &node) != users.end(),
                    "value '{}' does not know that it is captured here", capture->outer()->name());
        }
        verify_structure(*body, &graph);
    }
}

// Counts how many producers each node still waits for; what is left when nothing can proceed is a cycle.
void verify_acyclic(const Graph& graph) {
    std::unordered_map<const Node*, size_t> waiting;
    std::vector<const Node*> ready;
    for (const Value* value : graph.values())
        if (value->producer() != nullptr)
            for (const Node* user : value->users()) ++waiting[user];
    for (const auto& node : graph.nodes())
        if (!waiting.contains(node.get())) ready.push_back(node.get());
    size_t done = 0;
    for (; done < ready.size(); ++done)
        for (const Value* output : ready[done]->outputs()) {
            if (output == nullptr) continue;
            for (const Node* user : output->users())
                if (--waiting[user] == 0) ready.push_back(user);
        }
    if (done == graph.nodes().size()) return;
    for (const auto& node : graph.nodes())
        require(!waiting.contains(node.get()) || waiting.at(node.get()) == 0,
                "the graph has a cycle through {}", describe(*node));
}

void verify_outputs(const Graph& graph, const ValueSet& own) {
    std::unordered_set<std::string_view> names;
    for (const Graph::Output& output : graph.outputs()) {
        require(!output.name.empty(), "an output of the graph has no name");
        require(names.insert(output.name).second, "two outputs of the graph are named '{}'", output.name);
        require(output.value != nullptr && own.contains(output.value), "output '{}' is no value of the graph",
                output.name);
        const Value& value = *output.value;
        require(value.is_input() || value.is_constant() || value.producer() != nullptr ||
                    value.outer() != nullptr,
                "nothing computes the output '{}'", output.name);
        const DType declared = output.type.dtype;
        require(declared == DType::undefined || value.type.dtype == DType::undefined ||
                    declared == value.type.dtype,
                "output '{}' is declared {} but is {}", output.name, name(declared), name(value.type.dtype));
    }
}

}  // namespace

void verify_structure(const Graph& graph, const Graph* parent) {
    const std::vector<Value*> values = graph.values();
    const ValueSet own(values.begin(), values.end());
    require(parent != nullptr || graph.captures().empty(), "a graph that is in no other captures '{}'",
            graph.captures().empty() ? "" : graph.captures()[0]->name());
    verify_values(graph);
    for (const auto& node : graph.nodes()) {
        try {
            verify_links(*node, own);
            verify_subgraphs(graph, *node, own);
        } catch (const Error& error) {
            throw error.in(describe(*node));
        }
    }
    verify_acyclic(graph);
    verify_outputs(graph, own);
}

}  // namespace kilter
