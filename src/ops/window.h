// The sliding window of convolutions and pools: kernel, strides, dilations and pads, read from untrusted attributes.
// A Window that was read is valid: every list has one entry per spatial axis and the arithmetic on it cannot overflow.
#pragma once

#include <array>

#include "ops/op.h"

namespace kilter {

enum class AutoPad { notset, valid, same_upper, same_lower };

//! Largest kernel, stride, dilation, pad and dimension that the arithmetic of windows accepts.
inline constexpr int64_t kWindowLimit = int64_t{1} << 30;

struct Window {
    std::vector<int64_t> kernel;  // -1 where not known yet
    std::vector<int64_t> strides, dilations, pads_begin, pads_end;
    AutoPad auto_pad = AutoPad::notset;
    bool ceil_mode = false;

    size_t rank() const { return kernel.size(); }
    //! Extent of the dilated kernel.
    int64_t reach(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
    //! Sets the pads that auto_pad asks for.
    void resolve_pads(const Shape& spatial);
    //! Number of window positions; throws when the kernel does not fit. An unknown input gives an unknown output
    //! unless the window keeps every extent.
    Dim output(size_t axis, const Dim& input) const;
    Dims output(const Dims& spatial) const;
};

//! Reads strides, dilations, pads, auto_pad and ceil_mode for a kernel of one to three axes.
Window read_window(const Attributes& attributes, std::vector<int64_t> kernel);
//! The required attribute kernel_shape of a pool, one entry per spatial axis.
std::vector<int64_t> pool_kernel(const Attributes& attributes, size_t spatial_rank);
//! Throws when a pad is as large as the kernel: a pool would look at nothing but padding.
void require_pads_inside_kernel(const Window& window);

//! One to three spatial axes written as three, with leading axes of extent 1.
using Triple = std::array<int64_t, 3>;
Triple triple(std::span<const int64_t> values, int64_t absent);

//! The output positions for which tap `tap` of the kernel reads a real element: [begin, end).
struct Range {
    int64_t begin = 0, end = 0;
};
Range positions_inside(int64_t tap_offset, int64_t stride, int64_t pad, int64_t input, int64_t output);
//! The taps of the window at `start` (negative inside the padding) that read a real element.
Range taps_inside(int64_t start, int64_t dilation, int64_t kernel, int64_t input);

}  // namespace kilter
