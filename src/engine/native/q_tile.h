// The innermost loop of integer products on AVX512-VNNI: the sums of a few rows times a panel of up to 48 columns, held in
// registers. QMatMul and QAttention pack their second operand into panels and call it.
#pragma once

#include <cstdint>
#include <vector>

namespace kilter::engine {

// Eight rows times three vectors keep 24 of 32 registers busy; with the columns of one step and a row's bytes next to them,
// the multiplier never waits for a load (95 % of its peak on Zen 4; 6x64 and 12x32 were 2 and 6 % slower).
inline constexpr int64_t kTileRows = 8;
inline constexpr int64_t kTileVectors = 3;
inline constexpr int64_t kLanes = 16;
inline constexpr int64_t kTileColumns = kTileVectors * kLanes;

//! A panel holds `vectors` times 16 columns: first the int32 sum of each column, then, for every four rows of the matrix, four
//! bytes of each column side by side. Columns beyond the matrix are zero, and so are rows beyond it.
constexpr int64_t panel_bytes(int64_t depth, int64_t vectors) {
    return (1 + (depth + 3) / 4) * vectors * kLanes * 4;
}

//! How many vectors each panel of a matrix with `columns` columns has. No panel is narrower than the next by two, so that
//! none has too few sums to hide the latency of the multiplier when it could share with its neighbour.
std::vector<int64_t> panel_widths(int64_t columns);

//! Packs columns [first, first + 16·vectors) of a matrix with `depth` rows; strides in bytes.
void pack_panel(const int8_t* matrix, int64_t row_stride, int64_t column_stride, int64_t depth, int64_t first,
                int64_t columns, int64_t vectors, char* panel);

//! sums[r][c] = Σ (a[r][k] - zero_point)·b[k][c] for `rows` rows of `a`, `stride` bytes apart. `depth` is a multiple of four;
//! `sums` has kTileColumns numbers per row and is aligned to 64 bytes, as is the panel.
void multiply_tile(const uint8_t* a, int64_t stride, int64_t rows, const char* panel, int64_t vectors,
                   int64_t depth, int32_t zero_point, int32_t* sums);

}  // namespace kilter::engine
