// Common sub-expression elimination: of equal computations on the same inputs, and of equal constants, one is
// kept.
#include <unordered_map>

#include <fmt/format.h>

#include "ops/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

// Comparing contents reads them: weights stay untouched in the mapped file, shape and scale constants are
// below this.
constexpr size_t kMaxCompared = 4096;

std::string key_of(const Tensor& tensor) {
    std::string key = fmt::format("{}[{}]", name(tensor.dtype()), fmt::join(tensor.shape(), ","));
    if (tensor.dtype() == DType::string) {
        for (const std::string& text : tensor.as_strings()) key += fmt::format("{}:{}", text.size(), text);
        return key;
    }
    if (tensor.bytes() > kMaxCompared)
        return fmt::format("{}@{}", key,
                           tensor.raw());  // the same bytes of the same file still count as equal
    if (tensor.size() > 0) key.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
    return key;
}

struct AttributeKey {
    std::string operator()(int64_t v) const { return fmt::format("i{}", v); }
    std::string operator()(float v) const { return fmt::format("f{:a}", v); }
    std::string operator()(const std::string& v) const { return fmt::format("s{}:{}", v.size(), v); }
    std::string operator()(const Tensor& v) const { return fmt::format("t{}", key_of(v)); }
    template <class T>
    std::string operator()(const std::vector<T>& v) const {
        std::string key = fmt::format("v{}", v.size());
        for (const T& entry : v) key += fmt::format(";{}", (*this)(entry));
        return key;
    }
    std::string operator()(const std::shared_ptr<Graph>& v) const {
        return fmt::format("g{}", fmt::ptr(v.get()));
    }
    std::string operator()(const AttributeReference& v) const {
        return fmt::format("r{}:{}", v.type, v.name);
    }
    std::string operator()(const ForeignAttribute& v) const {
        return fmt::format("x{}:{}", v.bytes.size(), v.bytes);
    }
};

std::string key_of(const Node& node) {
    std::string key = fmt::format("{}.{}/{}", node.domain(), node.op(), node.outputs().size());
    for (const Value* value : node.outputs()) key += value == nullptr ? '-' : '+';
    for (const Value* value : node.inputs()) key += fmt::format(",{}", value == nullptr ? -1 : value->id());
    for (const auto& [attribute, value] : node.attributes)
        key += fmt::format("|{}=", attribute) + std::visit(AttributeKey{}, value);
    return key;
}

bool merge_constants(Graph& graph) {
    bool changed = false;
    std::unordered_map<std::string, Value*> first;
    for (Value* value : graph.constants()) {
        if (value->users().empty() || value->listed_as_input) continue;
        const auto [entry, fresh] = first.emplace(key_of(*graph.constant(value)), value);
        if (fresh) continue;
        graph.replace_uses(value, entry->second);
        changed = true;
    }
    return changed;
}

bool merge_nodes(Graph& graph) {
    bool changed = false;
    std::unordered_map<std::string, Node*> first;
    for (const auto& node : graph.nodes()) {
        const OpDefinition* definition = find_op(*node);
        if (definition == nullptr || !definition->deterministic || !node->subgraphs().empty()) continue;
        const auto [entry, fresh] = first.emplace(key_of(*node), node.get());
        if (fresh) continue;
        for (size_t i = 0; i < node->outputs().size(); ++i)
            if (node->output(i) != nullptr) graph.replace_uses(node->output(i), entry->second->output(i));
        add_origins(*entry->second, *node);
        changed = true;
    }
    return changed;
}

}  // namespace

//! Works within one graph at a time; random operators are never merged.
bool merge_duplicates(Graph& graph) {
    bool changed = merge_constants(graph);
    changed = merge_nodes(graph) ||
              changed;  // nodes are in topological order: duplicates of duplicates merge in one go
    if (changed) graph.remove_dead();
    for (const auto& node : graph.nodes()) {
        bool inside = false;
        for (Graph* body : node->subgraphs()) inside = merge_duplicates(*body) || inside;
        if (inside) graph.update_captures(*node);
        changed = changed || inside;
    }
    return changed;
}

}  // namespace kilter
