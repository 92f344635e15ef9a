#include "formats/tensorflow/inline_functions.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/fail.h"

namespace kilter::tensorflow {
namespace {

// Recursion does not end, and a few functions that call each other twice grow without limit.
constexpr int kMaxCallDepth = 64;
constexpr size_t kMaxInlinedNodes = 2'000'000;

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

    void run() {
        std::vector<TfNode*> calls;
        TfAttributes ignored;
        for (const auto& node : graph_.nodes())
            if (called(graph_, *node, ignored) != nullptr) calls.push_back(node.get());
        for (TfNode* call : calls) expand(*call, 0);
    }

  private:
    // Replaces a node of the graph by the body of its function.
    void expand(TfNode& call, int depth) {
        TfAttributes attributes;
        const TfFunction* function = called(graph_, call, attributes);
        if (function == nullptr) return;
        try {
            require(depth < kMaxCallDepth, "functions call each other more than {} deep", kMaxCallDepth);
            const std::vector<TfInput> results = add_body(call, *function, attributes);
            for (size_t port = 0; port < results.size(); ++port)
                redirect(TfInput::of(call.name, static_cast<int>(port)), results[port]);
            drop_control(call.name);
        } catch (const Error& error) {
            throw error.in(describe(call));
        }
        const std::vector<std::string> added = std::move(added_);
        const TfNode* gone = &call;
        graph_.remove({&gone, 1});
        for (const std::string& name : added) {
            TfNode* node = graph_.find(name);
            if (node != nullptr) expand(*node, depth + 1);
        }
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
            for (TfInput& input : copy.inputs) input = resolve(input);
            bind(copy.attributes, attributes);
            added_.push_back(copy.name);
            graph_.add(std::move(copy));
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
        }
        const std::vector<std::string_view> names = output_names(node.op);
        const auto name = std::ranges::find(names, input.argument);
        return input.port + (name == names.end() ? 0 : static_cast<int>(name - names.begin()));
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

    void redirect(const TfInput& from, const TfInput& to) {
        for (const auto& node : graph_.nodes())
            for (TfInput& input : node->inputs)
                if (!input.control && input.node == from.node && input.port == from.port) input = to;
    }

    // The order of side effects is not kept: what is left is what inference computes.
    void drop_control(const std::string& name) {
        for (const auto& node : graph_.nodes())
            std::erase_if(node->inputs,
                          [&](const TfInput& input) { return input.control && input.node == name; });
    }

    TfGraph& graph_;
    std::vector<std::string> added_;
};

}  // namespace

std::vector<std::string_view> output_names(std::string_view op) {
    struct Row {
        std::string_view op;
        std::vector<std::string_view> names;
    };
    static const std::vector<Row> rows{
        {"FusedBatchNorm", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}},
        {"FusedBatchNormV2", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}},
        {"FusedBatchNormV3",
         {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"}},
        {"TopK", {"values", "indices"}},
        {"TopKV2", {"values", "indices"}},
        {"Switch", {"output_false", "output_true"}},
        {"Merge", {"output", "value_index"}},
        {"Unique", {"y", "idx"}},
        {"UniqueV2", {"y", "idx"}},
        {"UniqueWithCounts", {"y", "idx", "count"}},
        {"ListDiff", {"out", "idx"}},
        {"MaxPoolWithArgmax", {"output", "argmax"}},
        {"NonMaxSuppressionV4", {"selected_indices", "valid_outputs"}},
        {"NonMaxSuppressionV5", {"selected_indices", "selected_scores", "valid_outputs"}},
        {"CombinedNonMaxSuppression", {"nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"}},
        {"TensorArrayV3", {"handle", "flow"}},
        {"QuantizeV2", {"output", "output_min", "output_max"}},
        {"Requantize", {"output", "output_min", "output_max"}},
        {"RequantizationRange", {"output_min", "output_max"}},
        {"Qr", {"q", "r"}},
        {"Svd", {"s", "u", "v"}},
        {"SoftmaxCrossEntropyWithLogits", {"loss", "backprop"}},
        {"SparseSoftmaxCrossEntropyWithLogits", {"loss", "backprop"}},
    };
    const auto row = std::ranges::find(rows, op, &Row::op);
    return row == rows.end() ? std::vector<std::string_view>() : row->names;
}

void inline_functions(TfGraph& graph) { Inliner(graph).run(); }

}  // namespace kilter::tensorflow
