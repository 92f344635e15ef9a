// What QuantizeLinear and DequantizeLinear say about a value, for the passes that turn them into integer operators.
#pragma once

#include <optional>
#include <vector>

#include "kilter/graph/graph.h"

namespace kilter {

//! One scale and zero point for a whole 8-bit tensor.
struct QuantizationParameters {
    float scale = 1.0F;
    int64_t zero_point = 0;
    DType dtype = DType::u8;
    bool operator==(const QuantizationParameters&) const = default;
};

//! The parameters of a QuantizeLinear or DequantizeLinear between f32 and an 8-bit type; nothing when they are not constant,
//! or one per channel.
std::optional<QuantizationParameters> tensor_parameters(const Graph& graph, const Node& node);

//! A value that is the DequantizeLinear of `integers`.
struct Dequantized {
    Value* integers = nullptr;
    QuantizationParameters parameters;
};
std::optional<Dequantized> dequantized(const Graph& graph, const Value* value);

//! The DequantizeLinear of constant i8 weights, symmetric, with one scale or one for each index of `axis`.
struct DequantizedWeights {
    Value* integers = nullptr;
    std::vector<float> scales;
};
std::optional<DequantizedWeights> dequantized_weights(const Graph& graph, const Value* value, int64_t axis);

//! Where the result of an operator goes: to its only reader, a QuantizeLinear, or as f32 to whoever reads it.
struct QuantizedResult {
    Value* value = nullptr;
    std::optional<QuantizationParameters> parameters;
};
QuantizedResult quantized_result(const Graph& graph, Value* value);

}  // namespace kilter
