// DequantizeLinear moves behind operators that only move or select numbers, so that these run on the integers.
#include <algorithm>

#include "passes/list.h"
#include "passes/quantization_parameters.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

constexpr std::array<std::string_view, 17> kTransparent{
    "MaxPool",      "GlobalMaxPool", "Reshape", "Transpose", "Concat", "Slice",
    "Split",        "Flatten",       "Squeeze", "Unsqueeze", "Gather", "DepthToSpace",
    "SpaceToDepth", "Pad",           "Resize",  "Identity",  "Expand"};

// Zero is the zero point; no other number need be representable.
bool pads_with_zero(const Graph& graph, const Node& pad) {
    if (pad.attributes.get_string("mode", "constant") != "constant" || pad.input(2) == nullptr) return true;
    const auto number = scalar_of(graph, pad.input(2));
    return number && *number == 0.0;
}

bool is_transparent(const Graph& graph, const Node& node) {
    if (node.is("MaxPool")) return node.output(1) == nullptr;
    if (node.is("Pad")) return pads_with_zero(graph, node);
    if (node.is("Resize")) return node.attributes.get_string("mode", "nearest") == "nearest";
    // What repeats numbers is cheaper before it does.
    if (node.is("Expand")) {
        const Node* reader = only_user(graph, node.output());
        return reader != nullptr && reader->is("QuantizeLinear");
    }
    return true;
}

bool sink(Graph& graph, Node& node) {
    if (!is_transparent(graph, node)) return false;
    const size_t count = node.is("Concat") ? node.inputs().size() : 1;
    std::vector<Value*> integers;
    std::optional<QuantizationParameters> shared;
    const Node* source = nullptr;
    for (size_t i = 0; i < count; ++i) {
        const auto input = dequantized(graph, node.input(i));
        if (!input || (shared && !(*shared == input->parameters))) return false;
        shared = input->parameters;
        source = node.input(i)->producer();
        integers.push_back(input->integers);
    }
    if (!shared || std::ranges::find(node.outputs(), nullptr) != node.outputs().end()) return false;
    Value* scale = source->input(1);
    Value* zero_point = source->input(2);
    for (size_t i = 0; i < count; ++i) graph.set_input(node, i, integers[i]);
    if (node.is("Pad") && node.attributes.get_string("mode", "constant") == "constant") {
        const double zero = static_cast<double>(shared->zero_point);
        graph.set_input(node, 2, graph.add_constant(Tensor::filled(shared->dtype, {}, zero)));
    }
    for (size_t i = 0; i < node.outputs().size(); ++i) {
        Value* real = node.output(i);
        Value* moved = graph.add_value({}, real->type);
        moved->type.dtype = shared->dtype;
        graph.set_output(node, i, moved);
        graph.add_node("DequantizeLinear", {moved, scale, zero_point}, {real});
    }
    return true;
}

// Weights in u8 around 128 are weights in i8 around 0: the form that all kernels take.
bool make_signed(Graph& graph, Node& node) {
    const Tensor* integers = constant_of(graph, node.input(0));
    const Tensor* zero_points = constant_of(graph, node.input(2));
    if (integers == nullptr || zero_points == nullptr || integers->dtype() != DType::u8) return false;
    if (std::ranges::any_of(zero_points->to_ints(), [](int64_t point) { return point != 128; })) return false;
    Tensor shifted(DType::i8, integers->shape());
    const auto* from = static_cast<const uint8_t*>(integers->raw());
    auto* to = static_cast<int8_t*>(shifted.raw_mutable());
    for (int64_t i = 0; i < integers->size(); ++i) to[i] = static_cast<int8_t>(from[i] - 128);
    const std::string stem = node.input(0)->name();
    Value* zero = graph.add_constant(Tensor::filled(DType::i8, zero_points->shape(), 0.0));
    graph.set_inputs(node,
                     {graph.add_constant(std::move(shifted), graph.fresh_name(stem)), node.input(1), zero});
    return true;
}

}  // namespace

//! Exact: the same numbers reach the same readers. Needs one constant scale and zero point, common to all parts of a Concat.
bool sink_dequantize(Graph& graph) {
    bool changed = rewrite(graph, "DequantizeLinear", make_signed);
    changed = rewrite(graph, std::span<const std::string_view>(kTransparent), sink) || changed;
    return changed;
}

}  // namespace kilter
