// Which operators of a graph can run on integers at all, and under which names plans know them.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "kilter/quantization/capabilities.h"

namespace kilter {

//! Why the operator can only run in floating point; empty when it can be quantized.
std::string why_not(const Graph& graph, const Node& node);

//! An activation that is part of the operator before it, once that runs on integers.
bool is_attached(const Node& node);

//! Of the operators that run on integers, those other than products that do not lie between two products, connected through
//! operators on integers only. Mode `smart` leaves them in floating point.
std::unordered_set<const Node*> without_products_around(const Graph& graph,
                                                        const std::unordered_set<const Node*>& on_integers);

//! The name of every operator of a graph in plans and reports: its own, else that of its output. Names that occur twice get
//! a number.
std::unordered_map<const Node*, std::string> plan_names(const Graph& graph);

//! Index of the weights among the inputs of a Conv, ConvTranspose or MatMul; -1 for others and when they are computed.
int weights_index(const Graph& graph, const Node& node);
//! The axis of the weights that has one position for each output channel; -1 when there is no such axis.
int weights_axis(const Graph& graph, const Node& node);
//! Products that are added up for one output element; 0 when unknown.
int64_t reduction_length(const Graph& graph, const Node& node);

}  // namespace kilter
