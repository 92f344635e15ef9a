// Reductions over any axes of row-major f32 arrays.
#pragma once

#include "engine/builder.h"

namespace kilter::engine {

enum class Reduction { sum, mean, max, min, prod, l1, l2, sum_square, log_sum, log_sum_exp };

//! y = x reduced along the axes marked in `reduced`; y holds the kept elements in order, with or without axes of one.
void add_reduction(Builder& builder, Reduction kind, const Array& x, const std::vector<bool>& reduced,
                   const Array& y);

}  // namespace kilter::engine
