// Nodes that pass values on: constants, identities, and the conditionals of TensorFlow 1.
#include <array>
#include <unordered_set>

#include "formats/tensorflow/lower/lowering.h"
#include "graph/onnx_dtype.h"

namespace kilter::tensorflow {
namespace {

void lower_const(Lowering& l) { l.result(l.add_constant(l.attributes().get_tensor("value").decode())); }

void pass_on(Lowering& l) { l.result(l.input(0)); }

void pass_all_on(Lowering& l) {
    for (size_t i = 0; i < l.size(); ++i) l.result(l.input(i), static_cast<int>(i));
}

// Both sides of a conditional are computed; Merge chooses.
void lower_switch(Lowering& l) {
    if (l.is_read(0)) l.result(l.input(0), 0);
    if (l.is_read(1)) l.result(l.input(0), 1);
}

// The Switch whose side an input lies on.
struct Side {
    const TfNode* node = nullptr;
    int port = 0;
};

std::optional<Side> find_side(const TfGraph& graph, const TfInput& start, int depth = 0) {
    constexpr int kMaxNestedConditionals = 32;
    if (depth > kMaxNestedConditionals) return std::nullopt;
    std::unordered_set<const TfNode*> seen;
    std::vector<TfInput> pending{start};
    while (!pending.empty()) {
        const TfInput input = pending.back();
        pending.pop_back();
        const TfNode* node = graph.producer(input);
        if (node == nullptr || !seen.insert(node).second) continue;
        if (node->op == "Switch" && !input.control) return Side{node, input.port};
        if (node->op == "Merge" && !node->inputs.empty()) {
            // An inner conditional: what matters is where its condition and data come from.
            const auto inner = find_side(graph, node->inputs[0], depth + 1);
            if (!inner) return std::nullopt;
            node = inner->node;
        }
        pending.insert(pending.end(), node->inputs.begin(), node->inputs.end());
    }
    return std::nullopt;
}

// Where a condition comes from: Switch nodes of one conditional may read it through Identity nodes.
TfInput condition_of(const TfGraph& graph, const TfNode& node) {
    TfInput condition = node.inputs[1];
    for (size_t steps = 0; steps < graph.size(); ++steps) {
        const TfNode* before = graph.producer(condition);
        if (before == nullptr || before->op != "Identity" || before->data_inputs() != 1) break;
        condition = before->inputs[0];
    }
    return condition;
}

void lower_merge(Lowering& l) {
    if (l.size() != 2) not_lowered("Merge of {} inputs", l.size());
    const auto first = find_side(l.source(), l.node().inputs[0]);
    const auto second = find_side(l.source(), l.node().inputs[1]);
    const bool paired = first && second && first->port != second->port && first->node->inputs.size() >= 2 &&
                        second->node->inputs.size() >= 2 &&
                        condition_of(l.source(), *first->node) == condition_of(l.source(), *second->node);
    if (!paired) not_lowered("the two sides of the condition are not recognised");
    Value* condition = l.find(first->node->inputs[1]);
    if (condition == nullptr) not_lowered("the condition is not known");
    if (!condition->type.shape || !condition->type.shape->empty()) condition = l.reshape(condition, {});
    Value* when_true = l.input(first->port == 1 ? 0 : 1);
    Value* when_false = l.input(first->port == 1 ? 1 : 0);
    const auto& a = when_true->type.shape;
    const auto& b = when_false->type.shape;
    if (!a || !b || !(*a == *b)) not_lowered("the two sides may have different shapes");
    l.result(l.emit("Where", {condition, when_true, when_false}));
    if (l.is_read(1)) {
        Value* index = first->port == 1 ? l.emit("Not", {condition}) : condition;
        l.result(l.cast(index, DType::i32), 1);
    }
}

void lower_random(Lowering& l, std::string_view op) {
    const DType dtype = l.dtype("dtype");
    Value* like = l.emit("Expand", {l.add_scalar(0, dtype), l.as_int64(l.input(0))});
    Attributes attributes = attributes_of({{"dtype", onnx_code(dtype)}});
    const int64_t seed = l.attributes().get_int("seed");
    if (seed != 0) attributes.set("seed", static_cast<float>(seed));
    l.result(l.emit(op, {like}, std::move(attributes)));
}

constexpr std::array kFlowRules{
    LowerRule{"Const", lower_const},
    LowerRule{"Identity", pass_on},
    LowerRule{"IdentityN", pass_all_on},
    LowerRule{"StopGradient", pass_on},
    LowerRule{"PreventGradient", pass_on},
    LowerRule{"Snapshot", pass_on},
    LowerRule{"CheckNumerics", pass_on},
    LowerRule{"EnsureShape", pass_on},
    LowerRule{"Print", pass_on},
    LowerRule{"PlaceholderWithDefault", pass_on},
    LowerRule{"Switch", lower_switch},
    LowerRule{"Merge", lower_merge},
    LowerRule{"RandomUniform", [](Lowering& l) { lower_random(l, "RandomUniformLike"); }},
    LowerRule{"RandomStandardNormal", [](Lowering& l) { lower_random(l, "RandomNormalLike"); }},
};

}  // namespace

std::span<const LowerRule> flow_rules() { return kFlowRules; }

}  // namespace kilter::tensorflow
