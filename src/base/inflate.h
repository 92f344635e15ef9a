// Deflated data: files packed with gzip, as MNIST is handed out, and the members of zip archives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kilter {

bool is_gzip(std::span<const std::byte> bytes);
//! What was packed. Throws Error when the file is damaged, truncated, or would unpack to more than `most` bytes.
std::vector<std::byte> gunzip(std::span<const std::byte> bytes, size_t most);
//! The same for data without a header.
std::vector<std::byte> inflate_raw(std::span<const std::byte> bytes, size_t most);
//! The checksum that zip archives keep of their members.
uint32_t zip_checksum(std::span<const std::byte> bytes);

}  // namespace kilter
