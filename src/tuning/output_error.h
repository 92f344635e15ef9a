// How far the outputs of a quantized model are from those of FP32, as one number.
#pragma once

#include <vector>

#include "kilter/base/tensor.h"

namespace kilter {

//! Sum over the outputs: for rows of class scores the mean Kullback-Leibler divergence of what softmax makes of them (or of
//! the rows as they are, when they are probabilities); otherwise noise over signal. Infinite when a result is not finite.
double output_error(const std::vector<Tensor>& reference, const std::vector<Tensor>& outputs);

}  // namespace kilter
