// Bytes that are concatenated must mean the same. Where their makers requantize to constant ranges, all can get the widest, and
// the concatenation only copies.
#include <algorithm>
#include <cmath>
#include <set>

#include "formats/tensorflow/rewrites/affine.h"

namespace kilter::tensorflow {
namespace {

bool has_constant_range(const TfNode& node) {
    const std::vector<std::string> ops = node.attributes.get_strings("fused_ops");
    return (node.op.starts_with("_FusedQuantized") || node.op == "_QuantizedMatMul") && !ops.empty() &&
           ops.back() == "Requantize";
}

// The operators that make the bytes of an input, through pools, reshapes and other concatenations; false when one of them
// does not requantize to a constant range.
bool collect_makers(TfGraph& graph, const TfInput& input, std::set<TfNode*>& makers,
                    std::set<TfNode*>& between) {
    TfNode* node = graph.producer(input);
    if (node == nullptr || input.port != 0) return false;
    if (has_constant_range(*node)) {
        makers.insert(node);
        return true;
    }
    const bool single = node->op == "QuantizedMaxPool" || node->op == "QuantizedAvgPool" ||
                        node->op == "Reshape" || node->op == "Squeeze";
    const bool concatenation = node->op == "QuantizedConcatV2";
    if (!single && !concatenation) return false;
    between.insert(node);
    const size_t count = single ? 1 : static_cast<size_t>(node->attributes.get_int("N"));
    for (size_t i = 0; i < count; ++i)
        if (i >= node->inputs.size() || !collect_makers(graph, node->inputs[i], makers, between))
            return false;
    return true;
}

bool set_scalar(TfGraph& graph, const TfInput& input, float value) {
    TfNode* node = graph.producer(input);
    if (node == nullptr || node->op != "Const") return false;
    const std::optional<Tensor> old = constant_of(graph, input);
    if (!old || old->size() != 1 || old->as<float>()[0] == value) return false;
    node->attributes.set("value", TfTensor(Tensor::scalar<float>(value)));
    return true;
}

// The largest magnitude of a constant range.
std::optional<float> reach(const TfGraph& graph, const TfInput& low, const TfInput& high) {
    const std::optional<Tensor> a = constant_of(graph, low);
    const std::optional<Tensor> b = constant_of(graph, high);
    if (!a || !b || a->size() != 1 || b->size() != 1) return std::nullopt;
    return std::max(std::fabs(a->as<float>()[0]), std::fabs(b->as<float>()[0]));
}

bool rerange(TfGraph& graph, TfNode& concat) {
    const auto count = static_cast<size_t>(concat.attributes.get_int("N"));
    if (count == 0 || concat.data_inputs() != 3 * count + 1) return false;
    std::set<TfNode*> makers;
    std::set<TfNode*> between;
    for (size_t i = 0; i < count; ++i)
        if (!collect_makers(graph, concat.inputs[i], makers, between)) return false;
    float widest = 0.0F;
    for (const TfNode* maker : makers) {
        const size_t inputs = maker->data_inputs();
        const auto own = reach(graph, maker->inputs[inputs - 2], maker->inputs[inputs - 1]);
        if (!own) return false;
        widest = std::max(widest, *own);
    }
    const float low = concat.attributes.get_type("T") == kQint8 ? -widest : 0.0F;
    bool changed = false;
    for (const TfNode* maker : makers) {
        const size_t inputs = maker->data_inputs();
        changed |= set_scalar(graph, maker->inputs[inputs - 2], low);
        changed |= set_scalar(graph, maker->inputs[inputs - 1], widest);
    }
    for (size_t i = 0; i < count; ++i) {
        changed |= set_scalar(graph, concat.inputs[count + 1 + i], low);
        changed |= set_scalar(graph, concat.inputs[2 * count + 1 + i], widest);
    }
    for (const TfNode* node : between)
        if (node->op.starts_with("Quantized") && node->op != "QuantizedConcatV2") {
            changed |= set_scalar(graph, node->inputs[1], low);
            changed |= set_scalar(graph, node->inputs[2], widest);
        }
    return changed;
}

}  // namespace

int rerange_quantized_concat(TfGraph& graph) {
    // An operator may feed two concatenations: widening it for one asks the other for more.
    std::set<const TfNode*> reranged;
    for (bool changed = true; changed;) {
        changed = false;
        for (TfNode* node : graph.sorted()) {
            if (node->op != "QuantizedConcatV2" || !rerange(graph, *node)) continue;
            reranged.insert(node);
            changed = true;
        }
    }
    return static_cast<int>(reranged.size());
}

}  // namespace kilter::tensorflow
