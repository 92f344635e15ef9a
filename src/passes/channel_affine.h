// y·scale + shift per output channel, moved into the weights and bias of the operator that makes y.
// The arithmetic: (w∗x + b)·s + t = (s·w)∗x + (s·b + t); exact up to rounding.
#pragma once

#include <optional>
#include <vector>

#include "kilter/graph/graph.h"

namespace kilter {

struct ChannelAffine {
    std::vector<double> scale;  // one entry for all channels, or one each
    std::vector<double> shift;
};

//! Conv, ConvTranspose and kilter.MatMul, and the fused forms of the former, as long as they have no
//! post-ops.
bool has_channels(const Node& node);
//! Output channels of such a node: 0 when unknown.
int64_t channel_count(const Graph& graph, const Node& node);
//! The axis of its output, counted from the front, that holds the channels; -1 when the rank is unknown.
int channel_axis(const Node& node);

//! A constant that has one number for all channels of `node`'s output, or one for each, and broadcasts over
//! the rest.
std::optional<std::vector<double>> channel_constant(const Graph& graph, const Value* value, const Node& node);

//! Makes `node` compute y·scale + shift, with new constants. False, and nothing changed, when it cannot.
bool absorb_affine(Graph& graph, Node& node, const ChannelAffine& affine);

}  // namespace kilter
