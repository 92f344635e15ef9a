// What Resize mixes: the reference kernel and the engine's kernels read the same table.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kilter/graph/attributes.h"

namespace kilter {

//! The input elements that an output element mixes. Outside: the extrapolation value is used instead.
struct ResizeTaps {
    std::vector<std::pair<int64_t, double>> entries;
    bool outside = false;
};

using AxisTaps = std::vector<ResizeTaps>;  // by output position

//! For every axis of `x` what each output position mixes; nothing for an axis that stays as it is.
//! One of `scales` and `sizes` is empty. Not for tf_crop_and_resize, which depends on a region.
std::vector<std::optional<AxisTaps>> resize_taps(const Attributes& attributes, const Shape& x,
                                                 std::span<const float> scales,
                                                 std::span<const int64_t> sizes);

}  // namespace kilter
