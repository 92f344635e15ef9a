// Loops between floats and bytes, compiled for several instruction sets. All round half to even.
#pragma once

#include "kilter/base/tensor.h"
#include "ops/integer_result.h"

namespace kilter::engine {

//! y = saturate(round(x / scale) + zero_point), as QuantizeLinear says; `dtype` is u8 or i8.
void quantize(const float* x, int64_t count, float scale, int64_t zero_point, DType dtype, char* y);
//! y = (x - zero_point)·scale.
void dequantize(const char* x, DType dtype, int64_t count, float scale, int64_t zero_point, float* y);
//! The same for rows of `count` bytes, where every column has parameters of its own; zero points are whole numbers.
void dequantize_columns(const char* x, DType dtype, int64_t count, const float* scales,
                        const float* zero_points, float* y);
//! y = saturate(round(t·(1/scale) + zero_point)), as docs/arithmetic.md says of requantization.
void requantize(const float* t, int64_t count, const ResultType& type, char* y);
//! y = table[x], 256 entries.
void look_up(const char* x, int64_t count, const char* table, char* y);

}  // namespace kilter::engine
