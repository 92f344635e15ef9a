#include "formats/tensorflow/freeze.h"

#include <map>
#include <optional>
#include <unordered_set>

#include "base/fail.h"
#include "formats/tensorflow/bundle.h"

namespace kilter::tensorflow {
namespace {

// The node behind a chain of nodes that only pass a value on.
const TfNode* behind_identities(const TfGraph& graph, const TfInput& input, int& port) {
    const TfNode* node = graph.producer(input);
    port = input.port;
    for (size_t steps = 0;
         node != nullptr && node->op == "Identity" && !node->inputs.empty() && steps < graph.size();
         ++steps) {
        port = node->inputs[0].port;
        node = graph.producer(node->inputs[0]);
    }
    return node;
}

bool is_variable(const TfNode& node) {
    return node.op == "VarHandleOp" || node.op == "VariableV2" || node.op == "Variable";
}

// The restoring part of the graph assigns outputs of RestoreV2 to variables: which key belongs to which.
std::map<std::string, std::string> checkpoint_keys(const TfGraph& graph) {
    std::map<std::string, std::string> keys;
    for (const auto& node : graph.nodes()) {
        if ((node->op != "AssignVariableOp" && node->op != "Assign") || node->data_inputs() != 2) continue;
        int port = 0;
        const TfNode* variable = behind_identities(graph, node->inputs[0], port);
        const TfNode* restore = behind_identities(graph, node->inputs[1], port);
        if (variable == nullptr || !is_variable(*variable) || restore == nullptr ||
            restore->op != "RestoreV2" || restore->data_inputs() < 2)
            continue;
        const auto names = constant_of(graph, restore->inputs[1]);
        if (!names || names->dtype() != DType::string) continue;
        const std::vector<std::string>& texts = names->as_strings();
        if (static_cast<size_t>(port) < texts.size()) keys[variable->name] = texts[static_cast<size_t>(port)];
    }
    return keys;
}

class Freezer {
  public:
    Freezer(TfGraph& graph, std::filesystem::path prefix) : graph_(graph), prefix_(std::move(prefix)) {}

    void run(const std::map<std::string, std::string>& keys) {
        std::vector<TfNode*> nodes;
        for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
        for (TfNode* node : nodes) {
            if (node->op == "VariableV2" || node->op == "Variable") {
                make_constant(*node, value_of(*node, keys));
            } else if (node->op == "ReadVariableOp" && node->data_inputs() == 1) {
                if (const TfNode* variable = variable_behind(*node))
                    make_constant(*node, value_of(*variable, keys));
            } else if (node->op == "ResourceGather" && node->data_inputs() == 2) {
                if (const TfNode* variable = variable_behind(*node))
                    make_gather(*node, value_of(*variable, keys));
            }
        }
    }

  private:
    const TfNode* variable_behind(const TfNode& node) const {
        int port = 0;
        const TfNode* variable = behind_identities(graph_, node.inputs[0], port);
        return variable != nullptr && variable->op == "VarHandleOp" ? variable : nullptr;
    }

    Tensor value_of(const TfNode& variable, const std::map<std::string, std::string>& keys) {
        const auto key = keys.find(variable.name);
        require(key != keys.end(), "{}: nothing restores this variable", describe(variable));
        if (!bundle_) bundle_.emplace(prefix_);
        return bundle_->read(key->second);
    }

    static void make_constant(TfNode& node, Tensor value) {
        node.op = "Const";
        std::erase_if(node.inputs, [](const TfInput& input) { return !input.control; });
        node.attributes = {};
        TfTensor tensor(std::move(value));
        node.attributes.set("dtype", tensor.type());
        node.attributes.set("value", std::move(tensor));
    }

    void make_gather(TfNode& node, Tensor value) {
        const std::string table = graph_.fresh_name(node.name + "/table");
        const std::string axis = graph_.fresh_name(node.name + "/axis");
        const TfType type = TfType::of(value.dtype());
        graph_.add_constant(table, std::move(value));
        graph_.add_constant(axis, Tensor::scalar<int32_t>(0));
        TfAttributes attributes;
        attributes.set("Tparams", type);
        attributes.set("Tindices", node.attributes.get_type("Tindices", kInt32));
        attributes.set("Taxis", kInt32);
        attributes.set("batch_dims", node.attributes.get_int("batch_dims"));
        node.op = "GatherV2";
        node.inputs[0] = TfInput::of(table);
        node.inputs.insert(node.inputs.begin() + 2, TfInput::of(axis));
        node.attributes = std::move(attributes);
    }

    TfGraph& graph_;
    std::filesystem::path prefix_;
    std::optional<Bundle> bundle_;
};

}  // namespace

void keep_ancestors(TfGraph& graph, const std::vector<std::string>& outputs) {
    std::unordered_set<const TfNode*> needed;
    std::vector<const TfNode*> pending;
    for (const std::string& output : outputs) pending.push_back(graph.find(TfInput(output).node));
    while (!pending.empty()) {
        const TfNode* node = pending.back();
        pending.pop_back();
        if (node == nullptr || !needed.insert(node).second) continue;
        for (const TfInput& input : node->inputs) pending.push_back(graph.producer(input));
    }
    std::vector<const TfNode*> unneeded;
    for (const auto& node : graph.nodes())
        if (!needed.contains(node.get())) unneeded.push_back(node.get());
    graph.remove(unneeded);
}

void freeze_variables(TfGraph& graph, const std::filesystem::path& prefix,
                      const std::vector<std::string>& outputs) {
    const std::map<std::string, std::string> keys = checkpoint_keys(graph);
    keep_ancestors(graph, outputs);
    Freezer(graph, prefix).run(keys);
    keep_ancestors(graph, outputs);
}

}  // namespace kilter::tensorflow
