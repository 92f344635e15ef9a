// Puts QuantizeLinear and DequantizeLinear into a graph, once all decisions are made.
#pragma once

#include "kilter/quantization/params.h"
#include "quantization/groups.h"

namespace kilter {

//! A constant of integers and its DequantizeLinear; returns the f32 value that operators read.
Value* add_dequantized(Graph& graph, const Tensor& integers, const QuantParams& params,
                       const std::string& stem);

//! QuantizeLinear and DequantizeLinear behind `value`; returns the dequantized value. Readers are left alone.
Value* add_pair(Graph& graph, Value* value, const QuantParams& params);

//! Every value of a quantized group gets its pair, and readers read what the rules say.
void insert_pairs(Graph& graph, const Groups& groups);

}  // namespace kilter
