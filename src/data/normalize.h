// The arithmetic between pixels and what a network takes: x · scale, minus a mean, over a deviation, per channel.
#pragma once

#include <vector>

#include "kilter/base/tensor.h"

namespace kilter {

//! y = (x · scale - mean) / std.
struct Normalization {
    float scale = 1;
    std::vector<float> mean, std;  // nothing (0 and 1), one for all channels, or one for each

    bool operator==(const Normalization&) const = default;
};

//! f32 from numbers of any type. Channels lie along `axis`; -1: there are none.
//! Throws Error when the numbers of means or deviations and of channels differ.
Tensor normalize(const Tensor& tensor, int axis, const Normalization& normalization);

//! [height, width, channels] to [channels, height, width].
Tensor to_planes(const Tensor& image);

//! Both at once for u8 [height, width, channels]; bit for bit what the two steps give.
Tensor normalize_to_planes(const Tensor& image, const Normalization& normalization);

}  // namespace kilter
