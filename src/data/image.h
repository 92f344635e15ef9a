// Images from JPEG and PNG files, and the way from pixels to the array a model expects.
// Broken files give an Error that names them; nothing a file says is believed before it is checked.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "kilter/base/tensor.h"

namespace kilter {

struct Image {
    int64_t width = 0, height = 0;
    std::vector<uint8_t> pixels;  // RGB, row by row
};

//! No image larger than this is decoded: a damaged header must not ask for the moon.
inline constexpr int64_t kMostPixels = int64_t{1} << 27;

//! The format is told from the first bytes. Grey and CMYK images become RGB, transparency is ignored.
Image read_image(const std::filesystem::path& path);
Image decode_image(std::span<const std::byte> bytes);

//! Scales so that the shorter side has `short_side` pixels, with a triangle filter that covers every source pixel.
Image resize_short_side(const Image& image, int64_t short_side);
//! The middle `width` x `height` pixels; throws Error when the image is smaller.
Image center_crop(const Image& image, int64_t width, int64_t height);

enum class Layout { nchw, nhwc };

//! x = (pixel · scale - mean) / std, per channel.
struct Normalization {
    float scale = 1;
    std::array<float, 3> mean{0, 0, 0};
    std::array<float, 3> std{1, 1, 1};
};

//! [channels, height, width] or [height, width, channels] of f32; with one channel, the luma of the image.
Tensor to_tensor(const Image& image, int64_t channels, Layout layout, const Normalization& normalization);

}  // namespace kilter
