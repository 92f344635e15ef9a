// The reference executor: interprets a canonical graph one operator at a time with the scalar kernels of src/ops.
// It is the oracle for the engine and for every pass.
#pragma once

#include <functional>
#include <vector>

#include "kilter/graph/graph.h"

namespace kilter::ref {

//! Outputs in the order of graph.outputs(). Inputs in the order of graph.inputs(); types and shapes are checked.
std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs);

//! The same, and tells `observe` every computed value: what calibration and `kilter diff` look at.
std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs,
                        const std::function<void(const Value&, const Tensor&)>& observe);

using Lookup = std::function<Tensor(const Value&)>;
using RunBody = std::function<std::vector<Tensor>(const Graph& body, const std::vector<Tensor>& inputs)>;

//! One operator on given inputs (empty Tensor: absent optional input). Sub-graphs find captured values through `lookup`;
//! `run_body`, when given, runs them instead of this executor.
std::vector<Tensor> run_node(const Node& node, const std::vector<Tensor>& inputs, const Lookup& lookup = {},
                             const RunBody& run_body = {});

//! Throws the Error about an operator that has no kernel.
[[noreturn]] void refuse(const Node& node);

}  // namespace kilter::ref
