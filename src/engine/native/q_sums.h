// What happens to a tile of integer sums on AVX-512: scales, bias, residual, activation, rounding, all in registers.
// The order is that of docs/arithmetic.md, "Requantization".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/integer_result.h"

namespace kilter::engine {

struct SumStep {
    enum class Kind { add_u8, add_i8, add_f32, relu, clip, linear, gelu };
    Kind kind;
    float alpha, beta;  // of an operand in bytes: scale and zero point
    int input;          // of the node; -1 where there is no operand
};

//! The post-ops as steps; nothing when one of them is not among those above. `dtypes` are those of the node's inputs.
std::optional<std::vector<SumStep>> sum_steps(const FloatTail& tail, const std::vector<DType>& dtypes);

inline constexpr size_t kMostSteps = 4;

//! Where the numbers of one tile are. Operands and result have `stride` elements per row.
struct SumTile {
    const int32_t* sums;  // kTileColumns per row
    int64_t rows, columns, stride;
    const float* scales;                          // of the tile's columns, padded to whole vectors
    const float* bias;                            // null: none
    std::array<const char*, kMostSteps> operand;  // by step: its first element in this tile
    char* result;
};

//! `vectors` is the width of the tile's panel.
void store_sums(const std::vector<SumStep>& steps, const ResultType& type, int64_t vectors,
                const SumTile& tile);

}  // namespace kilter::engine
