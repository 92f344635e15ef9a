#include "formats/mxnet/lower.h"

#include <algorithm>
#include <unordered_map>

#include "base/fail.h"
#include "formats/mxnet/input_types.h"
#include "formats/mxnet/lower/lowering.h"

namespace kilter::mxnet {
namespace {

std::unordered_map<std::string, Tensor> by_name(const NamedArrays& arrays) {
    std::unordered_map<std::string, Tensor> found;
    for (const auto& [name, array] : arrays) {
        const bool prefixed = name.starts_with("arg:") || name.starts_with("aux:");
        if (!array.empty()) found.emplace(prefixed ? name.substr(4) : name, array);
    }
    return found;
}

// How many outputs of every node somebody reads.
std::vector<size_t> outputs_read(const Symbol& symbol) {
    std::vector<size_t> counts(symbol.nodes.size(), 1);
    const auto note = [&](const Entry& entry) {
        // No operator has that many: do not make values for a number that somebody made up.
        require(entry.index < 4096, "output {} of '{}' is read", entry.index, symbol.nodes[entry.node].name);
        counts[entry.node] = std::max(counts[entry.node], entry.index + 1);
    };
    for (const SymbolNode& node : symbol.nodes) std::ranges::for_each(node.inputs, note);
    std::ranges::for_each(symbol.heads, note);
    return counts;
}

}  // namespace

Model lower(const Symbol& symbol, const NamedArrays& given, const ReadOptions& options) {
    const std::unordered_map<std::string, Tensor> arrays = by_name(given);
    Model model;
    Graph& graph = model.graph;
    model.opsets = {{"", kCanonicalOpset}, {std::string(kOpaqueDomain), 1}};
    model.producer_name = "MXNet";
    if (symbol.version > 0)
        model.producer_version =
            fmt::format("{}.{}.{}", symbol.version / 10000, symbol.version / 100 % 100, symbol.version % 100);
    for (const auto& input : options.inputs) {
        const auto is_named = [&](const SymbolNode& node) {
            return node.is_variable() && node.name == input.first;
        };
        require(std::ranges::any_of(symbol.nodes, is_named), "the symbol has no input '{}'", input.first);
    }
    Lowering lowering(graph);
    const std::vector<size_t> counts = outputs_read(symbol);
    std::vector<std::vector<Value*>> values(symbol.nodes.size());
    for (size_t i = 0; i < symbol.nodes.size(); ++i) {
        const SymbolNode& node = symbol.nodes[i];
        if (node.is_variable()) {
            // Two variables of one name are bound to one array.
            if (Value* known = graph.find(node.name)) {
                values[i] = {known};
                continue;
            }
            const auto array = arrays.find(node.name);
            if (array != arrays.end()) {
                values[i] = {graph.add_constant(array->second, node.name)};
            } else if (is_label(symbol, i)) {
                values[i] = {nullptr};
            } else {
                ValueType type = input_type(symbol, i, arrays);
                const auto told =
                    std::ranges::find(options.inputs, node.name, &std::pair<std::string, ValueType>::first);
                if (told != options.inputs.end()) {
                    if (told->second.dtype != DType::undefined) type.dtype = told->second.dtype;
                    if (told->second.shape) type.shape = told->second.shape;
                }
                values[i] = {graph.add_input(node.name, std::move(type))};
            }
            continue;
        }
        std::vector<Value*> inputs;
        for (const Entry& input : node.inputs) {
            require(input.index < values[input.node].size(),
                    "node '{}' reads output {} of '{}', which has {}", node.name, input.index,
                    symbol.nodes[input.node].name, values[input.node].size());
            inputs.push_back(values[input.node][input.index]);
        }
        values[i] = lowering.lower(node, std::move(inputs), counts[i]);
    }
    for (const Entry& head : symbol.heads) {
        require(head.index < values[head.node].size(), "the output '{}' has no number {}",
                symbol.nodes[head.node].name, head.index);
        Value* value = values[head.node][head.index];
        require(value != nullptr, "the output '{}' is a label", symbol.nodes[head.node].name);
        const bool taken =
            std::ranges::find(graph.outputs(), value->name(), &Graph::Output::name) != graph.outputs().end();
        graph.add_output(value, taken ? graph.fresh_name(value->name()) : value->name());
    }
    graph.remove_dead();
    return model;
}

}  // namespace kilter::mxnet
