// JPEG decoding on libjpeg-turbo.
#pragma once

#include "data/image.h"

namespace kilter {

bool is_jpeg(std::span<const std::byte> bytes);
//! Throws Error that says what is wrong; a truncated image is an error, too.
Tensor decode_jpeg(std::span<const std::byte> bytes);

}  // namespace kilter
