#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace kilter {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82F63B78;

// Table k holds the effect of a byte that is followed by k others: eight bytes are folded in at once.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
    Tables tables{};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? kReversedPolynomial : 0);
        tables[0][i] = value;
    }
    for (size_t k = 1; k < 8; ++k)
        for (size_t i = 0; i < 256; ++i)
            tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 0xFF];
    return tables;
}

constexpr Tables kTables = make_tables();
static_assert(std::endian::native == std::endian::little);

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
    uint32_t value = ~before;
    const std::byte* next = bytes.data();
    size_t left = bytes.size();
    for (; left >= 8; left -= 8, next += 8) {
        uint64_t word = 0;
        std::memcpy(&word, next, 8);
        word ^= value;
        value = 0;
        for (size_t k = 0; k < 8; ++k) value ^= kTables[7 - k][word >> (8 * k) & 0xFF];
    }
    for (; left > 0; --left, ++next)
        value = value >> 8 ^ kTables[0][(value ^ std::to_integer<uint32_t>(*next)) & 0xFF];
    return ~value;
}

}  // namespace kilter
