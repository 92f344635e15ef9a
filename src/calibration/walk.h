// Walk: a strided array as runs of neighbouring values in memory order, with the channel each run or value belongs to.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kilter {

struct Walk {
    struct Dimension {
        int64_t size, stride;
        bool channel;
    };
    //! Largest stride first; dimensions that follow each other without a gap are one. The last has stride 1.
    std::vector<Dimension> dimensions;

    int64_t channels = 1;  // 1 without a channel axis
    //! Channels are neighbours (channels-last); otherwise every run belongs to one channel.
    bool channels_innermost() const { return dimensions.back().channel; }
    bool contiguous = true;  // false: the innermost stride is not 1; copy first

    //! `channel_axis` may be -1. There must be elements.
    Walk(std::span<const int64_t> shape, std::span<const int64_t> strides, int channel_axis);
};

//! The array as a dense row-major copy.
std::vector<float> dense_copy(const float* data, std::span<const int64_t> shape,
                              std::span<const int64_t> strides);

}  // namespace kilter
