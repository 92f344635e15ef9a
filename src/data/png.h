// PNG decoding on libpng.
#pragma once

#include "data/image.h"

namespace kilter {

bool is_png(std::span<const std::byte> bytes);
//! Throws Error that says what is wrong.
Tensor decode_png(std::span<const std::byte> bytes);

}  // namespace kilter
