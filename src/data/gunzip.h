// Files packed with gzip, as MNIST is handed out.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kilter {

bool is_gzip(std::span<const std::byte> bytes);
//! What was packed. Throws Error when the file is damaged, truncated, or would unpack to more than `most` bytes.
std::vector<std::byte> gunzip(std::span<const std::byte> bytes, size_t most);

}  // namespace kilter
