// Strides, dilations and paddings of convolutions and pools, as numbers.
#pragma once

#include <optional>

#include "kilter/graph/graph.h"

namespace kilter::engine {

struct ConvGeometry {
    Shape kernel, strides, dilations;  // dilations as oneDNN counts them: 0 is dense
    Shape pads_begin, pads_end;
    int64_t groups = 1;
};

//! Null when oneDNN cannot express it (negative paddings, no spatial dimension). Paddings follow from the shapes,
//! so every spelling of auto_pad and output_shape is covered. `y` is the shape of the result.
std::optional<ConvGeometry> conv_geometry(const Node& node, const Shape& x, const Shape& weights,
                                          const Shape& y, bool transposed);
//! Pools: kernel from the attribute `kernel_shape`. ceil_mode shows as larger pads_end.
std::optional<ConvGeometry> pool_geometry(const Node& node, const Shape& x, const Shape& y);

}  // namespace kilter::engine
