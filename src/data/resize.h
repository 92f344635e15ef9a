// Resizing images the way Pillow and OpenCV do it: models were trained and judged with one of them, and they differ.
#pragma once

#include <string_view>

#include "kilter/base/tensor.h"

namespace kilter {

enum class Interpolation { nearest, bilinear, bicubic, area };

//! Pillow widens its filters when it shrinks, so that every pixel counts, and rounds after each of the two passes.
//! OpenCV (and TensorFlow, without antialiasing) looks at the same few neighbours whatever the ratio.
enum class Resampler { pillow, opencv };

//! [height, width, channels] of u8 or f32 to another height and width; the element type stays. u8 results equal Pillow's
//! and differ from OpenCV's by one level at most; Pillow knows no `area`, its `box` filter comes nearest.
Tensor resize(const Tensor& image, int64_t height, int64_t width, Interpolation interpolation,
              Resampler resampler);

}  // namespace kilter
