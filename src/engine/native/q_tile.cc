#include "engine/native/q_tile.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/native/vnni.h"

namespace kilter::engine {
namespace {

KILTER_VNNI_INLINE __m512i four_bytes(const uint8_t* x) {
    int32_t word = 0;
    std::memcpy(&word, x, 4);
    return _mm512_set1_epi32(word);
}

// Rows are reached from a pointer to every third of them: x86 addresses have a base and one or two strides, and more pointers
// than these would not stay in registers.
template <int kRows, int kVectors>
KILTER_VNNI void tile(const uint8_t* a, int64_t stride, const char* panel, int64_t depth, int32_t zero_point,
                      int32_t* sums) {
    __m512i sum[kRows][kVectors];  // NOLINT: registers
    const __m512i factor = _mm512_set1_epi32(-zero_point);
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
        const __m512i start = _mm512_mullo_epi32(_mm512_load_si512(panel + v * 64), factor);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) sum[r][v] = start;
    }
    const uint8_t* third[3] = {a, a + 3 * stride, a + 6 * stride};  // NOLINT: registers
    const char* b = panel + kVectors * 64;
    const char* end = b + depth / 4 * kVectors * 64;
#pragma GCC unroll 1
    for (; b != end; b += kVectors * 64) {
        __m512i columns[kVectors];  // NOLINT: registers
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v) columns[v] = _mm512_load_si512(b + v * 64);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
            const __m512i row = four_bytes(third[r / 3] + r % 3 * stride);
#pragma GCC unroll 3
            for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], row, columns[v]);
        }
        for (const uint8_t*& row : third) row += 4;
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v)
            _mm512_store_si512(sums + r * kTileColumns + v * kLanes, sum[r][v]);
}

using Tile = void (*)(const uint8_t*, int64_t, const char*, int64_t, int32_t, int32_t*);
template <int kRows>
constexpr std::array<Tile, kTileVectors> row_of_tiles() {
    return {tile<kRows, 1>, tile<kRows, 2>, tile<kRows, 3>};
}
constexpr std::array<std::array<Tile, kTileVectors>, kTileRows> kTiles{
    row_of_tiles<1>(), row_of_tiles<2>(), row_of_tiles<3>(), row_of_tiles<4>(),
    row_of_tiles<5>(), row_of_tiles<6>(), row_of_tiles<7>(), row_of_tiles<8>()};

}  // namespace

std::vector<int64_t> panel_widths(int64_t columns) {
    const int64_t vectors = (columns + kLanes - 1) / kLanes;
    std::vector<int64_t> widths(static_cast<size_t>((vectors + kTileVectors - 1) / kTileVectors),
                                kTileVectors);
    const int64_t missing = static_cast<int64_t>(widths.size()) * kTileVectors - vectors;
    for (int64_t i = 0; i < missing; ++i)
        --widths[widths.size() - 1 - static_cast<size_t>(i) % widths.size()];
    return widths;
}

void pack_panel(const int8_t* matrix, int64_t row_stride, int64_t column_stride, int64_t depth, int64_t first,
                int64_t columns, int64_t vectors, char* panel) {
    std::memset(panel, 0, static_cast<size_t>(panel_bytes(depth, vectors)));
    const int64_t count = std::min(vectors * kLanes, columns - first);
    char* bytes = panel + vectors * kLanes * 4;
    std::array<int32_t, kTileColumns> sums{};
    for (int64_t k = 0; k < depth; ++k) {
        const int8_t* row = matrix + k * row_stride + first * column_stride;
        char* to = bytes + k / 4 * vectors * kLanes * 4 + k % 4;
        for (int64_t c = 0; c < count; ++c) {
            const int8_t value = row[c * column_stride];
            sums[static_cast<size_t>(c)] += value;
            to[c * 4] = static_cast<char>(value);
        }
    }
    std::memcpy(panel, sums.data(), static_cast<size_t>(vectors * kLanes * 4));
}

void multiply_tile(const uint8_t* a, int64_t stride, int64_t rows, const char* panel, int64_t vectors,
                   int64_t depth, int32_t zero_point, int32_t* sums) {
    kTiles[static_cast<size_t>(rows - 1)][static_cast<size_t>(vectors - 1)](a, stride, panel, depth,
                                                                            zero_point, sums);
}

}  // namespace kilter::engine
