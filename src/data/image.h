// Images from JPEG and PNG files, as u8 tensors [height, width, 3].
// Broken files give an Error that names them; nothing a file says is believed before it is checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "kilter/base/tensor.h"

namespace kilter {

//! No image larger than this is decoded: a damaged header must not ask for the moon.
inline constexpr int64_t kMostPixels = int64_t{1} << 27;

//! The format is told from the first bytes. Grey and CMYK images become RGB, transparency is ignored.
Tensor read_image(const std::filesystem::path& path);
Tensor decode_image(std::span<const std::byte> bytes);
//! Is this the name of a JPEG or PNG file?
bool is_image_name(const std::filesystem::path& path);

//! The same picture with 1 channel (its luma, as Pillow computes it), 3 or 4 (opaque). Throws Error for other numbers.
Tensor with_channels(const Tensor& image, int64_t channels);

}  // namespace kilter
