// Which nodes lie between inputs and outputs, and in which order they are lowered.
#include "formats/tensorflow/lower.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "formats/tensorflow/inline_functions.h"
#include "formats/tensorflow/lower/lowering.h"
#include "kilter/version.h"

namespace kilter::tensorflow {
namespace {

using Port = std::pair<std::string, int>;

// The text users write ("name", "name:0") as a port of a node that exists.
TfInput parse_tensor(const TfGraph& graph, const std::string& text, std::string_view what) {
    TfInput tensor(text);
    require(!tensor.control && tensor.argument.empty(), "{} '{}' names no tensor", what, text);
    if (graph.find(tensor.node) == nullptr)
        throw Error(fmt::format("there is no node '{}', which was given as {}", tensor.node, what),
                    "`kilter inspect` lists the possible inputs and outputs");
    return tensor;
}

bool is_placeholder(const TfNode& node) { return node.op == "Placeholder" || node.op == "PlaceholderV2"; }

// What is needed to compute the outputs: how many outputs of each node are read.
std::map<std::string, int> needed_ports(const TfGraph& graph, const std::set<Port>& fed,
                                        const std::vector<TfInput>& outputs) {
    std::map<std::string, int> ports;
    std::vector<TfInput> pending = outputs;
    while (!pending.empty()) {
        const TfInput input = std::move(pending.back());
        pending.pop_back();
        if (fed.contains({input.node, input.port})) continue;
        const auto [entry, added] = ports.try_emplace(input.node, 0);
        entry->second = std::max(entry->second, input.port + 1);
        if (!added) continue;
        for (const TfInput& next : graph.find(input.node)->inputs)
            if (!next.control) pending.push_back(next);
    }
    return ports;
}

// More outputs than any operator has: a port beyond is damage, not a node that splits much.
constexpr int kMaxPorts = 1 << 16;
// Constants of one repeated value are short in the file and long in memory; a few bytes must not ask for all of it.
constexpr size_t kMostFilled = size_t{1} << 30U;

ValueType placeholder_type(const TfNode& node) {
    ValueType type;
    type.dtype = node.attributes.get_type("dtype").dtype();
    type.shape = to_dims(node.attributes.get_shape("shape"));
    if (type.shape)
        for (size_t axis = 0; axis < type.shape->size(); ++axis)
            if (!(*type.shape)[axis].known())
                (*type.shape)[axis] = Dim(fmt::format("{}_{}", node.name, axis));
    return type;
}

// What a convolution and its like tell about the tensor they read.
std::optional<Dims> shape_for_reader(const TfGraph& graph, const TfNode& reader, size_t index) {
    constexpr std::array<std::string_view, 8> kImages{
        "MaxPool",          "AvgPool",        "FusedBatchNorm", "FusedBatchNormV2",
        "FusedBatchNormV3", "ResizeBilinear", "SpaceToDepth",   "LRN"};
    if (index != 0) return std::nullopt;
    if (std::ranges::find(kImages, reader.op) != kImages.end()) return Dims(4);
    if (reader.op == "MatMul") return Dims(2);
    if (reader.op != "Conv2D" && reader.op != "DepthwiseConv2dNative") return std::nullopt;
    Dims dims(4);
    const auto weights = reader.inputs.size() > 1 ? constant_of(graph, reader.inputs[1]) : std::nullopt;
    const bool last = reader.attributes.get_string("data_format", "NHWC") == "NHWC";
    if (weights && weights->rank() == 4) dims[last ? 3 : 1] = Dim(weights->dim(2));
    return dims;
}

}  // namespace

ValueType inner_type(const TfGraph& graph, const TfInput& tensor) {
    const TfNode& node = *graph.find(tensor.node);
    ValueType type;
    try {
        type = lower(graph, {{}, {tensor.text()}}).graph.outputs().front().value->type;
    } catch (const Error&) {  // what lies before may be anything
    }
    const std::vector<TfType> types = node.attributes.get_types("output_types");  // of iterators
    if (type.dtype == DType::undefined && static_cast<size_t>(tensor.port) < types.size())
        type.dtype = types[static_cast<size_t>(tensor.port)].dtype();
    for (const std::string_view name : {"T", "dtype", "DstT", "out_type", "output_type"}) {
        const TfValue* value = node.attributes.find(name);
        const auto* found = value == nullptr ? nullptr : std::get_if<TfType>(value);
        if (type.dtype == DType::undefined && found != nullptr) type.dtype = found->dtype();
    }
    if (!type.shape) {
        const TfList& known =
            node.attributes.has("_output_shapes") ? node.attributes.get_list("_output_shapes") : TfList();
        if (static_cast<size_t>(tensor.port) < known.shapes.size())
            type.shape = to_dims(known.shapes[static_cast<size_t>(tensor.port)]);
    }
    for (const auto& reader : graph.nodes())
        for (size_t i = 0; i < reader->inputs.size() && !type.shape; ++i)
            if (reader->inputs[i] == tensor) type.shape = shape_for_reader(graph, *reader, i);
    if (type.shape)
        for (size_t axis = 0; axis < type.shape->size(); ++axis)
            if (!(*type.shape)[axis].known())
                (*type.shape)[axis] = Dim(fmt::format("{}_{}", tensor.text(), axis));
    return type;
}

namespace {

// Inputs of one declared shape whose open dimensions meet in an addition or the like are meant to have one size: BERT's
// ids, masks and segments. With one name for it, the passes see that shapes are equal.
void unify_symbols(Graph& graph) {
    std::map<std::string, std::string> name_of;  // symbol to the one that stands for it
    std::map<std::string, size_t> input_of;
    for (size_t i = 0; i < graph.inputs().size(); ++i)
        if (const auto& shape = graph.inputs()[i]->type.shape)
            for (const Dim& dim : *shape)
                if (!dim.known()) input_of.emplace(dim.symbol, i);
    const auto declared = [&](size_t index) {
        Ints sizes;
        for (const Dim& dim : *graph.inputs()[index]->type.shape)
            sizes.push_back(dim.known() ? dim.value : -1);
        return sizes;
    };
    const auto root = [&](std::string symbol) {
        for (auto next = name_of.find(symbol); next != name_of.end(); next = name_of.find(symbol))
            symbol = next->second;
        return symbol;
    };
    const auto meet = [&](const Dim& a, const Dim& b) {
        const auto first = input_of.find(a.symbol);
        const auto second = input_of.find(b.symbol);
        if (a.known() || b.known() || first == input_of.end() || second == input_of.end()) return;
        if (first->second == second->second || declared(first->second) != declared(second->second)) return;
        const std::string x = root(a.symbol);
        const std::string y = root(b.symbol);
        if (x != y) name_of[std::max(x, y)] = std::min(x, y);
    };
    for (const auto& node : graph.nodes()) {
        if (!node->is("Add") && !node->is("Sub") && !node->is("Mul") && !node->is("Div")) continue;
        const auto& a = node->input(0)->type.shape;
        const auto& b = node->input(1)->type.shape;
        if (!a || !b) continue;
        for (size_t i = 1; i <= std::min(a->size(), b->size()); ++i)
            meet((*a)[a->size() - i], (*b)[b->size() - i]);
    }
    if (name_of.empty()) return;
    for (Value* input : graph.inputs())
        if (input->type.shape)
            for (Dim& dim : *input->type.shape)
                if (!dim.known()) dim = Dim(root(dim.symbol));
    for (Value* value : graph.values())
        if (value->producer() != nullptr) value->type.shape.reset();
    infer_types(graph);
}

std::vector<TfInput> wanted_outputs(const TfGraph& graph, const std::vector<std::string>& names) {
    std::vector<TfInput> outputs;
    for (const std::string& name : names) outputs.push_back(parse_tensor(graph, name, "output"));
    if (!names.empty()) return outputs;
    for (const TfNode* node : possible_outputs(graph)) outputs.push_back(TfInput::of(node->name));
    require(!outputs.empty(), "the graph computes nothing: every node is read by another one");
    return outputs;
}

}  // namespace

std::vector<const TfNode*> possible_outputs(const TfGraph& graph) {
    constexpr std::array<std::string_view, 6> kNoResult{"Const",       "Assign",        "NoOp",
                                                        "Placeholder", "PlaceholderV2", "Assert"};
    std::set<std::string_view> read;
    for (const auto& node : graph.nodes())
        for (const TfInput& input : node->inputs) read.insert(input.node);
    std::vector<const TfNode*> found;
    for (const auto& node : graph.nodes())
        if (!read.contains(node->name) && std::ranges::find(kNoResult, node->op) == kNoResult.end())
            found.push_back(node.get());
    return found;
}

Model lower(const TfGraph& graph, const LowerOptions& options) {
    if (std::ranges::any_of(graph.nodes(), [&](const auto& node) { return is_call(graph, *node); })) {
        TfGraph flat(graph);
        inline_functions(flat, options.outputs);
        if (std::ranges::none_of(flat.nodes(), [&](const auto& node) { return is_call(flat, *node); }))
            return lower(flat, options);
    }
    const std::vector<TfInput> outputs = wanted_outputs(graph, options.outputs);
    Model model;
    model.opsets = {{"", kCanonicalOpset}};
    model.producer_name = "kilter";
    model.producer_version = KILTER_VERSION;
    model.source = graph.source;
    Lowering lowering(graph, model.graph);

    std::set<Port> fed;
    const auto feed = [&](const TfInput& tensor, ValueType type) {
        if (!fed.insert({tensor.node, tensor.port}).second) return;
        lowering.define(tensor, model.graph.add_input(tensor.text(), std::move(type)));
    };
    for (const std::string& name : options.inputs) {
        const TfInput tensor = parse_tensor(graph, name, "input");
        const TfNode& node = *graph.find(tensor.node);
        feed(tensor, is_placeholder(node) ? placeholder_type(node) : inner_type(graph, tensor));
    }
    const std::map<std::string, int> ports = needed_ports(graph, fed, outputs);
    if (options.inputs.empty())
        for (const auto& node : graph.nodes())
            if (is_placeholder(*node) && ports.contains(node->name))
                feed(TfInput::of(node->name), placeholder_type(*node));

    size_t filled = 0;
    for (const TfNode* node : graph.sorted()) {
        const auto needed = ports.find(node->name);
        if (needed == ports.end() || (is_placeholder(*node) && fed.contains({node->name, 0}))) continue;
        if (is_placeholder(*node))
            throw Error(
                fmt::format("the outputs need placeholder '{}', which is not among the inputs", node->name),
                "name it as an input, or choose inputs that lie behind it");
        require(needed->second <= kMaxPorts, "{}: output {} is read", describe(*node), needed->second - 1);
        if (node->op == "Const") filled += node->attributes.get_tensor("value").filled_bytes();
        require(filled <= kMostFilled, "{}: the constants claim more than {} MiB that the file does not hold",
                describe(*node), kMostFilled >> 20U);
        lowering.lower(*node, needed->second);
    }
    for (const TfInput& output : outputs) {
        Value* value = lowering.find(output);
        require(value != nullptr, "output '{}' is not computed", output.text());
        model.graph.add_output({.name = output.text(), .value = value, .type = {}});
    }
    model.graph.remove_dead();
    unify_symbols(model.graph);
    const auto is_opaque = [](const auto& node) { return node->domain() == kOpaqueDomain; };
    if (std::ranges::any_of(model.graph.nodes(), is_opaque)) model.opsets.emplace_back(kOpaqueDomain, 1);
    return model;
}

}  // namespace kilter::tensorflow
