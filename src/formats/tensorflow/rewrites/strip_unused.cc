// The part of a graph that leads from its inputs to its outputs.
#include <unordered_set>

#include "base/fail.h"
#include "formats/tensorflow/lower.h"
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
void become_placeholder(TfGraph& graph, TfNode& node) {
    const ValueType type = inner_type(graph, TfInput::of(node.name));
    TfType dtype = type.dtype == DType::undefined ? kFloat : TfType::of(type.dtype);
    if (node.op == "DecodeJpeg" || node.op == "DecodePng") dtype = kUint8;
    TfShape shape;
    if (type.shape) {
        shape.dims.emplace();
        for (const Dim& dim : *type.shape) shape.dims->push_back(dim.known() ? dim.value : -1);
    }
    for (const auto& reader : graph.nodes())
        for (const TfInput& input : reader->inputs)
            require(input.node != node.name || input.port == 0,
                    "'{}' cannot be an input: it has several outputs, and '{}' reads the one with number {}",
                    node.name, reader->name, input.port);
    node.op = "Placeholder";
    node.inputs.clear();
    node.attributes = {};
    node.attributes.set("dtype", dtype);
    node.attributes.set("shape", shape);
}

// TensorFlow refuses a node that is to be on the device of one that does not exist.
void drop_lost_colocations(const TfGraph& graph) {
    constexpr std::string_view kPrefix = "loc:@";
    for (const auto& node : graph.nodes()) {
        if (!node->attributes.has("_class")) continue;
        TfList list = node->attributes.get_list("_class");
        std::erase_if(list.strings, [&](const std::string& text) {
            return text.starts_with(kPrefix) && graph.find(text.substr(kPrefix.size())) == nullptr;
        });
        if (list.strings.empty())
            node->attributes.erase("_class");
        else
            node->attributes.set("_class", std::move(list));
    }
}

}  // namespace

int strip_unused(TfGraph& graph, std::span<const std::string> inputs, std::span<const std::string> outputs) {
    for (const std::string& input : inputs) {
        TfNode& node = named(graph, input, "an input");
        if (!node.op.starts_with("Placeholder")) become_placeholder(graph, node);
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
    drop_lost_colocations(graph);
    return static_cast<int>(unused.size());
}

}  // namespace kilter::tensorflow
