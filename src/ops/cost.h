// What an operator costs: multiply-accumulates and parameters, counted from inferred types. For reports and rankings.
#pragma once

#include <optional>

#include "kilter/graph/graph.h"

namespace kilter {

//! Multiply-accumulates of one run of `node`: 0 for operators that have none (element-wise, data movement),
//! absent when a shape that matters is not fully known. Sub-graphs are not counted.
std::optional<int64_t> multiply_accumulates(const Node& node);

//! Elements of all constants of the graph and its sub-graphs that are read: weights, biases, statistics.
int64_t parameter_count(const Graph& graph);
size_t parameter_bytes(const Graph& graph);

//! Does kilter's INT8 arithmetic apply: a float convolution or matrix product, before or after fusion?
bool is_quantizable(const Node& node);

}  // namespace kilter
