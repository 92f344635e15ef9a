#include "tuning/rerun.h"

#include <algorithm>
#include <unordered_set>

#include "tuning/hash.h"

namespace kilter {
namespace {

// Below this a constant is compared by its content: scales and zero points are made anew for every graph.
constexpr size_t kSmallConstant = 16384;

void add(Hash& hash, const Tensor& tensor) {
    hash.add(static_cast<uint64_t>(tensor.dtype()));
    hash.add(static_cast<uint64_t>(tensor.rank()));
    for (const int64_t size : tensor.shape()) hash.add(static_cast<uint64_t>(size));
    if (tensor.dtype() == DType::string)
        for (const std::string& text : tensor.as_strings()) hash.add(std::string_view(text));
    else if (tensor.bytes() > kSmallConstant)
        hash.add(reinterpret_cast<uint64_t>(tensor.raw()));
    else if (tensor.raw() != nullptr)
        hash.add(std::span(static_cast<const std::byte*>(tensor.raw()), tensor.bytes()));
}

void add(Hash& hash, const AttributeValue& value) {
    hash.add(value.index());
    const auto number = [&](auto n) {
        hash.add(std::string_view(reinterpret_cast<const char*>(&n), sizeof n));
    };
    std::visit(
        [&](const auto& held) {
            using T = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, float>) {
                number(held);
            } else if constexpr (std::is_same_v<T, std::string>) {
                hash.add(std::string_view(held));
            } else if constexpr (std::is_same_v<T, Tensor>) {
                add(hash, held);
            } else if constexpr (std::is_same_v<T, std::vector<int64_t>> ||
                                 std::is_same_v<T, std::vector<float>>) {
                for (const auto entry : held) number(entry);
            } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
                for (const std::string& entry : held) hash.add(std::string_view(entry));
            } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
                for (const Tensor& entry : held) add(hash, entry);
            } else {
                // Sub-graphs and what kilter does not interpret: equal only when they are the same object.
                hash.add(reinterpret_cast<uint64_t>(&held));
            }
        },
        value);
}

uint64_t of_node(const Node& node, const std::vector<uint64_t>& values) {
    Hash hash;
    hash.add(std::string_view(node.op()));
    hash.add(std::string_view(node.domain()));
    for (const Value* input : node.inputs())
        hash.add(input == nullptr ? 0 : values[static_cast<size_t>(input->id())]);
    for (const auto& [name, value] : node.attributes) {
        hash.add(std::string_view(name));
        add(hash, value);
    }
    return hash.value();
}

}  // namespace

std::vector<uint64_t> signatures(const Graph& graph) {
    std::vector<uint64_t> result(static_cast<size_t>(graph.value_limit()), 0);
    for (const Value* value : graph.inputs()) {
        Hash hash;
        hash.add(std::string_view("input"));
        hash.add(std::string_view(value->name()));
        result[static_cast<size_t>(value->id())] = hash.value();
    }
    for (const Value* value : graph.constants()) {
        Hash hash;
        add(hash, *graph.constant(value));
        result[static_cast<size_t>(value->id())] = hash.value();
    }
    for (const auto& node : graph.nodes()) {
        const uint64_t own = of_node(*node, result);
        for (size_t i = 0; i < node->outputs().size(); ++i) {
            if (node->output(i) == nullptr) continue;
            Hash hash;
            hash.add(own);
            hash.add(i);
            result[static_cast<size_t>(node->output(i)->id())] = hash.value();
        }
    }
    return result;
}

std::vector<std::string> values_to_keep(const Graph& graph, int64_t samples, size_t bytes) {
    struct Entry {
        const Value* value;
        size_t bytes;
    };
    std::vector<Entry> entries;
    size_t total = 0;
    for (const auto& node : graph.nodes()) {
        const Value* value = node->output();
        if (!node->is("QuantizeLinear") || !value->type.shape) continue;
        int64_t elements = 1;
        for (const Dim& dim : *value->type.shape) elements *= dim.known() ? dim.value : 1;
        const bool open = !value->type.shape->empty() && !value->type.shape->front().known();
        entries.push_back({value, static_cast<size_t>(elements * (open ? samples : 1))});
        total += entries.back().bytes;
    }
    std::vector<Entry> by_size = entries;
    std::ranges::stable_sort(by_size, std::greater<>(), &Entry::bytes);
    std::unordered_set<const Value*> dropped;
    for (const Entry& entry : by_size) {
        if (total <= bytes) break;
        total -= entry.bytes;
        dropped.insert(entry.value);
    }
    std::vector<std::string> names;
    for (const Entry& entry : entries)
        if (!dropped.contains(entry.value)) names.push_back(entry.value->name());
    return names;
}

Rerun rerun(const Model& model, const std::unordered_map<uint64_t, std::string>& known) {
    Rerun result;
    result.model = clone(model);
    Graph& graph = result.model.graph;
    const std::vector<uint64_t> signs = signatures(graph);

    // Back from the outputs, as far as values are not known.
    std::unordered_set<const Value*> seen;
    std::vector<Value*> frontier, pending;
    for (const Graph::Output& output : graph.outputs()) pending.push_back(output.value);
    bool changed = false;
    while (!pending.empty()) {
        Value* value = pending.back();
        pending.pop_back();
        if (value == nullptr || value->is_constant() || !seen.insert(value).second) continue;
        if (value->is_input()) {
            changed = true;
            continue;
        }
        if (known.contains(signs[static_cast<size_t>(value->id())])) {
            frontier.push_back(value);
            continue;
        }
        changed = true;
        for (Value* input : value->producer()->inputs()) pending.push_back(input);
        for (Graph* body : value->producer()->subgraphs())
            for (Value* capture : body->captures()) pending.push_back(capture->outer());
    }
    result.changed = changed;
    std::ranges::sort(frontier, {}, &Value::id);
    std::unordered_map<std::string, std::string> known_as;
    for (Value* value : frontier) {
        Value* input = graph.add_input(graph.fresh_name(value->name() + "_known"), value->type);
        known_as[input->name()] = known.at(signs[static_cast<size_t>(value->id())]);
        graph.replace_uses(value, input);
    }
    graph.remove_dead();
    const std::vector<Value*> inputs(graph.inputs().begin(), graph.inputs().end());
    for (Value* input : inputs)
        if (input->users().empty() && !graph.is_output(input)) graph.remove_input(input);
    for (const Value* input : graph.inputs()) {
        const auto found = known_as.find(input->name());
        result.known.push_back(found == known_as.end() ? input->name() : found->second);
    }
    return result;
}

}  // namespace kilter
