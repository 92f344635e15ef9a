// The part of a graph that leads from its inputs to its outputs.
#include <unordered_set>

#include "base/fail.h"
#include "formats/tensorflow/rewrites/rewrites.h"

namespace kilter::tensorflow {
namespace {

TfNode& named(TfGraph& graph, const std::string& text, std::string_view what) {
    const TfInput tensor(text);
    TfNode* node = graph.find(tensor.node);
    if (node == nullptr)
        throw Error(fmt::format("there is no node '{}', which was given as {}", tensor.node, what),
                    "`kilter inspect` lists the possible inputs and outputs");
    require(!tensor.control && (tensor.port == 0 || what == "an output"),
            "'{}' cannot be {}: give the name of a node", text, what);
    return *node;
}

// What the node computed is fed from now on.
void become_placeholder(TfNode& node) {
    TfType type = node.attributes.get_type("T", node.attributes.get_type("dtype", kFloat));
    if (node.op == "Cast") type = node.attributes.get_type("DstT", kFloat);
    if (node.op == "DecodeJpeg" || node.op == "DecodePng") type = kUint8;
    node.op = "Placeholder";
    node.inputs.clear();
    node.attributes = {};
    node.attributes.set("dtype", type);
    node.attributes.set("shape", TfShape());
}

}  // namespace

int strip_unused(TfGraph& graph, std::span<const std::string> inputs, std::span<const std::string> outputs) {
    for (const std::string& input : inputs) {
        TfNode& node = named(graph, input, "an input");
        if (!node.op.starts_with("Placeholder")) become_placeholder(node);
    }
    std::unordered_set<const TfNode*> needed;
    std::vector<const TfNode*> pending;
    for (const std::string& output : outputs) pending.push_back(&named(graph, output, "an output"));
    while (!pending.empty()) {
        const TfNode* node = pending.back();
        pending.pop_back();
        if (!needed.insert(node).second) continue;
        for (const TfInput& input : node->inputs)
            if (const TfNode* before = graph.producer(input)) pending.push_back(before);
    }
    // Inputs stay even when no output needs them: programs feed them.
    for (const std::string& input : inputs) needed.insert(&named(graph, input, "an input"));
    std::vector<const TfNode*> unused;
    for (const auto& node : graph.nodes())
        if (!needed.contains(node.get())) unused.push_back(node.get());
    graph.remove(unused);
    return static_cast<int>(unused.size());
}

}  // namespace kilter::tensorflow
