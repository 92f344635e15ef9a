// CRC-32C (Castagnoli), the checksum of TFRecord files and of our own journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kilter {

//! Of these bytes, continuing from the checksum of what came before them.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace kilter
