#include "formats/tensorflow/inline_functions.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_set>

#include "base/fail.h"
#include "formats/tensorflow/output_arguments.h"

namespace kilter::tensorflow {
namespace {

// Recursion does not end, and a few functions that call each other twice grow without limit.
constexpr int kMaxCallDepth = 64;
constexpr size_t kMaxInlinedNodes = 500'000;
constexpr size_t kMaxNameBytes = 256U << 20U;

// The call inside a node: the function, and the attributes it is called with.
const TfFunction* called(const TfGraph& graph, const TfNode& node, TfAttributes& attributes) {
    attributes = node.attributes;
    if (node.op == "PartitionedCall" || node.op == "StatefulPartitionedCall") {
        const TfFunctionCall& call = node.attributes.get_function("f");
        for (const auto& [name, value] : call.attributes) attributes.set(name, value);
        return graph.find_function(call.name);
    }
    return graph.find_function(node.op);
}

// How many tensors an argument stands for.
size_t tensor_count(const TfArgument& argument, const TfAttributes& attributes) {
    if (!argument.number_attr.empty()) {
        const int64_t count = attributes.get_int(argument.number_attr);
        require(count >= 0 && count < (1 << 20), "argument '{}' stands for {} tensors", argument.name, count);
        return static_cast<size_t>(count);
    }
    if (!argument.type_list_attr.empty()) return attributes.get_types(argument.type_list_attr).size();
    return 1;
}

class Inliner {
  public:
    explicit Inliner(TfGraph& graph) : graph_(graph) {}

    void run(std::span<const std::string> keep) {
        std::vector<TfNode*> calls;
        const auto read = graph_.uses();
        std::unordered_set<std::string> wanted;
        for (const std::string& tensor : keep) wanted.insert(TfInput(tensor).node);
        TfAttributes ignored;
        for (const auto& node : graph_.nodes())
            if (called(graph_, *node, ignored) != nullptr) calls.push_back(node.get());
        for (TfNode* call : calls) {
            TfAttributes attributes;
            const TfFunction* function = called(graph_, *call, attributes);
            expand(*call, 0);
            if (wanted.contains(call->name) || !read.contains(call->name))
                pass_on(*call, *function, attributes);
        }
        // All at once: a graph of many calls is not searched for every one of them.
        for (const auto& node : graph_.nodes()) {
            std::erase_if(node->inputs, [&](const TfInput& input) {
                // The order of side effects is not kept: what is left is what inference computes.
                return input.control && expanded_.contains(input.node);
            });
            for (TfInput& input : node->inputs)
                if (!input.control) input = result_of(std::move(input));
        }
        graph_.remove(gone_);
    }

  private:
    // Adds the body of the node's function to the graph.
    void expand(const TfNode& call, int depth) {
        TfAttributes attributes;
        const TfFunction* function = called(graph_, call, attributes);
        if (function == nullptr) return;
        try {
            require(depth < kMaxCallDepth, "functions call each other more than {} deep", kMaxCallDepth);
            expanded_[call.name] = add_body(call, *function, attributes);
        } catch (const Error& error) {
            throw error.in(describe(call));
        }
        gone_.push_back(&call);
        const std::vector<const TfNode*> added = std::move(added_);
        for (const TfNode* node : added) expand(*node, depth + 1);
    }

    // The call becomes a node that gives the tensors which the function returned.
    void pass_on(TfNode& call, const TfFunction& function, const TfAttributes& attributes) {
        TfList types;
        for (const TfArgument& output : function.outputs) {
            const TfType type =
                output.type_attr.empty() ? output.type : attributes.get_type(output.type_attr);
            if (output.type_list_attr.empty())
                types.types.insert(types.types.end(), tensor_count(output, attributes), type);
            else
                std::ranges::copy(attributes.get_types(output.type_list_attr),
                                  std::back_inserter(types.types));
        }
        if (types.types.empty()) return;
        gone_.erase(std::ranges::find(gone_, &call));
        call.inputs = expanded_.extract(call.name).mapped();
        call.attributes = {};
        call.op = types.types.size() == 1 ? "Identity" : "IdentityN";
        if (types.types.size() == 1)
            call.attributes.set("T", types.types[0]);
        else
            call.attributes.set("T", std::move(types));
    }

    // What a tensor of a call is in the end: functions may return what they were given, or what another call returns.
    TfInput result_of(TfInput tensor) const {
        for (size_t steps = 0; steps <= expanded_.size(); ++steps) {
            const auto call = expanded_.find(tensor.node);
            if (call == expanded_.end() || static_cast<size_t>(tensor.port) >= call->second.size())
                return tensor;
            tensor = call->second[static_cast<size_t>(tensor.port)];
        }
        fail("'{}' is what it is computed from", tensor.text());
    }

    std::vector<TfInput> add_body(const TfNode& call, const TfFunction& function,
                                  const TfAttributes& attributes) {
        // What the names inside stand for: arguments are the call's inputs.
        std::map<std::string, std::vector<TfInput>> arguments;
        size_t next = 0;
        for (const TfArgument& argument : function.inputs) {
            std::vector<TfInput>& tensors = arguments[argument.name];
            for (size_t i = tensor_count(argument, attributes); i > 0; --i) {
                require(next < call.data_inputs(), "function '{}' takes more than {} inputs", function.name,
                        call.data_inputs());
                tensors.push_back(call.inputs[next++]);
            }
        }
        std::map<std::string_view, const TfNode*> nodes;
        for (const TfNode& node : function.nodes) nodes.emplace(node.name, &node);

        const auto resolve = [&](const TfInput& input) {
            if (const auto argument = arguments.find(input.node); argument != arguments.end()) {
                require(static_cast<size_t>(input.port) < argument->second.size(),
                        "'{}' is read in function '{}'", input.text(), function.name);
                TfInput outer = argument->second[static_cast<size_t>(input.port)];
                outer.control = input.control;
                if (input.control) outer.port = 0;
                return outer;
            }
            const auto node = nodes.find(input.node);
            require(node != nodes.end(), "input '{}' does not exist in function '{}'", input.text(),
                    function.name);
            TfInput inner = TfInput::of(call.name + "/" + input.node);
            inner.control = input.control;
            if (!input.control) inner.port = flat_port(*node->second, input);
            return inner;
        };
        added_.clear();
        for (const TfNode& node : function.nodes) {
            require(graph_.size() < kMaxInlinedNodes, "the functions have more than {} nodes",
                    kMaxInlinedNodes);
            TfNode copy = node;
            copy.name = call.name + "/" + node.name;
            name_bytes_ += copy.name.size();
            require(name_bytes_ <= kMaxNameBytes, "the names in the functions are too long");
            for (TfInput& input : copy.inputs) input = resolve(input);
            bind(copy.attributes, attributes);
            added_.push_back(&graph_.add(std::move(copy)));
        }
        std::vector<TfInput> results;
        for (const TfArgument& output : function.outputs) {
            const auto returned =
                std::ranges::find(function.returns, output.name, &std::pair<std::string, std::string>::first);
            require(returned != function.returns.end(), "function '{}' does not return '{}'", function.name,
                    output.name);
            const TfInput first(returned->second);
            const size_t count = tensor_count(output, attributes);
            for (size_t i = 0; i < count; ++i) {
                TfInput tensor = first;
                tensor.port += static_cast<int>(i);
                results.push_back(resolve(tensor));
            }
        }
        return results;
    }

    // "node:argument:1" counts within the argument, a graph counts over all outputs.
    int flat_port(const TfNode& node, const TfInput& input) const {
        if (input.argument.empty()) return input.port;
        if (const TfFunction* function = graph_.find_function(node.op)) {
            int port = 0;
            for (const TfArgument& output : function->outputs) {
                if (output.name == input.argument) return port + input.port;
                port += static_cast<int>(tensor_count(output, node.attributes));
            }
            fail("function '{}' has no output '{}'", function->name, input.argument);
        }
        return input.port + first_port(node, input.argument);
    }

    static void bind(TfAttributes& attributes, const TfAttributes& given) {
        TfAttributes bound;
        for (const auto& [name, value] : attributes) {
            const auto* placeholder = std::get_if<TfPlaceholder>(&value);
            const TfValue* found = placeholder == nullptr ? nullptr : given.find(placeholder->name);
            bound.set(name, found == nullptr ? value : *found);
        }
        attributes = std::move(bound);
    }

    TfGraph& graph_;
    std::vector<const TfNode*> added_;                                // by the call that was expanded last
    std::unordered_map<std::string, std::vector<TfInput>> expanded_;  // calls, and the tensors they return
    std::vector<const TfNode*> gone_;
    size_t name_bytes_ = 0;
};

}  // namespace

void inline_functions(TfGraph& graph, std::span<const std::string> keep) { Inliner(graph).run(keep); }

bool is_call(const TfGraph& graph, const TfNode& node) {
    TfAttributes ignored;
    return called(graph, node, ignored) != nullptr;
}

}  // namespace kilter::tensorflow
