#include "passes/quantization_parameters.h"

#include <algorithm>
#include <cmath>

#include "passes/rewrite.h"

namespace kilter {
namespace {

bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }

// The integer side of a QuantizeLinear or DequantizeLinear.
DType integer_type(const Node& node) {
    return node.is("DequantizeLinear") ? node.input(0)->type.dtype : node.output()->type.dtype;
}

const Tensor* scales_of(const Graph& graph, const Node& node) {
    const Tensor* scales = constant_of(graph, node.input(1));
    if (scales == nullptr || scales->dtype() != DType::f32 || node.attributes.get_int("block_size", 0) != 0)
        return nullptr;
    const bool usable = std::ranges::all_of(scales->as<float>(), [](float scale) {
        return std::isfinite(scale) && std::isnormal(scale) && scale > 0;
    });
    return usable ? scales : nullptr;
}

// Zero points as integers; absent ones are zero.
std::optional<std::vector<int64_t>> zero_points_of(const Graph& graph, const Node& node) {
    return int_constants(graph, node.input(2), std::vector<int64_t>{0});
}

}  // namespace

std::optional<QuantizationParameters> tensor_parameters(const Graph& graph, const Node& node) {
    const Tensor* scales = scales_of(graph, node);
    const auto zero_points = zero_points_of(graph, node);
    const Value* real = node.is("DequantizeLinear") ? node.output() : node.input(0);
    if (scales == nullptr || scales->size() != 1 || !zero_points || zero_points->size() != 1)
        return std::nullopt;
    if (!is_byte(integer_type(node)) || real->type.dtype != DType::f32) return std::nullopt;
    return QuantizationParameters{scales->as<float>()[0], zero_points->front(), integer_type(node)};
}

std::optional<Dequantized> dequantized(const Graph& graph, const Value* value) {
    const Node* node = produced_by(value, "DequantizeLinear");
    const auto parameters = node == nullptr ? std::nullopt : tensor_parameters(graph, *node);
    if (!parameters) return std::nullopt;
    return Dequantized{node->input(0), *parameters};
}

std::optional<DequantizedWeights> dequantized_weights(const Graph& graph, const Value* value, int64_t axis) {
    const Node* node = produced_by(value, "DequantizeLinear");
    if (node == nullptr || node->output()->type.dtype != DType::f32) return std::nullopt;
    const Tensor* integers = constant_of(graph, node->input(0));
    const Tensor* scales = scales_of(graph, *node);
    const auto zero_points = zero_points_of(graph, *node);
    if (integers == nullptr || integers->dtype() != DType::i8 || scales == nullptr || !zero_points)
        return std::nullopt;
    if (std::ranges::any_of(*zero_points, [](int64_t point) { return point != 0; })) return std::nullopt;
    if (scales->size() != 1) {
        int64_t along = node->attributes.get_int("axis", 1);
        if (along < 0) along += integers->rank();
        if (along != axis || scales->rank() != 1 || scales->size() != integers->dim(static_cast<int>(axis)))
            return std::nullopt;
    }
    return DequantizedWeights{node->input(0), {scales->as<float>().begin(), scales->as<float>().end()}};
}

QuantizedResult quantized_result(const Graph& graph, Value* value) {
    const Node* reader = only_user(graph, value);
    if (reader == nullptr || !reader->is("QuantizeLinear") || reader->input(0) != value) return {value, {}};
    const auto parameters = tensor_parameters(graph, *reader);
    if (!parameters) return {value, {}};
    return {reader->output(), parameters};
}

}  // namespace kilter
