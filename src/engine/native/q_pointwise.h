// 1x1 convolutions of bytes with few input channels on AVX512-VNNI. What follows the sums takes longer there than the sums
// themselves: two pixels at a time, so that the CPU works on the sums of the next ones meanwhile. docs/engine.md has figures.
#pragma once

#include "engine/builder.h"
#include "engine/geometry.h"

namespace kilter::engine {

//! The step of a 1x1 QConv on u8 with at most a clamp behind it; false when it is something else.
bool build_q_pointwise(Builder& builder, const Node& node, const ConvGeometry& geometry);

}  // namespace kilter::engine
