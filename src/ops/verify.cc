// Verification of a whole graph: its structure, and every known operator against its schema.
#include <array>

#include "base/fail.h"
#include "graph/verify.h"
#include "ops/op.h"

namespace kilter {
namespace {

// In the order of AttributeKind: its words, and the alternative of AttributeValue that holds it.
struct KindEntry {
    std::string_view words;
    size_t alternative;
};
constexpr std::array<KindEntry, 8> kKinds{{{"an integer", 0},
                                           {"a number", 1},
                                           {"a string", 2},
                                           {"a tensor", 3},
                                           {"a graph", 4},
                                           {"a list of integers", 5},
                                           {"a list of numbers", 6},
                                           {"a list of strings", 7}}};
constexpr size_t kFirstUninterpreted = 10;  // references and foreign attributes fit everywhere

std::string range_text(int least, int most) {
    if (least == most) return fmt::format("{}", least);
    return most == kVariadic ? fmt::format("at least {}", least) : fmt::format("{} to {}", least, most);
}

void check_arity(const Node& node, const OpDefinition& op) {
    const auto inputs = static_cast<int>(node.inputs().size());
    const auto outputs = static_cast<int>(node.outputs().size());
    require(inputs >= op.min_inputs && inputs <= op.max_inputs, "takes {} inputs, found {}",
            range_text(op.min_inputs, op.max_inputs), inputs);
    // Formats drop outputs at the end that nobody reads, so fewer than the least are fine, but none at
    // all are not.
    require(outputs <= op.max_outputs && (outputs > 0 || op.min_outputs == 0), "has {} outputs, found {}",
            range_text(op.min_outputs, op.max_outputs), outputs);
    // An operator that takes "one or more" has a single list, with no gaps; fused ones have an optional
    // bias before theirs.
    const bool list = op.max_inputs == kVariadic && op.min_inputs == 1;
    for (int i = 0; i < (list ? inputs : op.min_inputs); ++i)
        require(node.input(static_cast<size_t>(i)) != nullptr, "input {} is missing", i);
}

void check_attributes(const Node& node, const OpDefinition& op) {
    for (const AttributeSpec& spec : op.attributes) {
        const AttributeValue* value = node.attributes.find(spec.name);
        require(value != nullptr || !spec.required, "attribute '{}' is missing", spec.name);
        if (value == nullptr || value->index() >= kFirstUninterpreted) continue;
        const KindEntry& kind = kKinds[static_cast<size_t>(spec.kind)];
        require(value->index() == kind.alternative, "attribute '{}' must be {}", spec.name, kind.words);
    }
}

void verify_operators(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
        try {
            verify_schema(*node);
            for (const Graph* body : node->subgraphs()) verify_operators(*body);
        } catch (const Error& error) {
            throw error.in(describe(*node));
        }
    }
}

}  // namespace

void verify_schema(const Node& node) {
    const OpDefinition* op = find_op(node);
    if (op == nullptr) return;
    check_arity(node, *op);
    check_attributes(node, *op);
}

void verify(const Graph& graph) {
    verify_structure(graph);
    verify_operators(graph);
}

}  // namespace kilter
