// What can be done to a model before or while it is quantized. Each recipe is a file of its own.
#pragma once

#include "kilter/quantization/quantize.h"

namespace kilter {

//! equalization.cc: evens out the ranges of channels between neighbouring convolutions. Keeps the function: a
//! Clip from zero becomes a Relu and a limit for each channel. What it did, for the report.
struct Equalized {
    int pairs = 0;
    int clips_split = 0;  // Clip(0, …) that got a limit for each channel
};
Equalized equalize(Graph& graph);

//! smooth_quant.cc: divides the channels of activations by s and multiplies the weights that read them by s. Keeps the
//! function. Returns the number of activations smoothed.
int smooth_quant(Graph& graph, const Stats& stats, double alpha);

//! bias_correction.cc: what must be added to the bias so that rounding the weights does not shift the mean of the result.
//! Empty when there are no means for the channels of `x`.
Tensor bias_correction(const Node& node, const Tensor& weights, const Tensor& rounded, const ValueStats* x);

//! ends.cc: first and last products stay in floating point, when the recipes say so.
void keep_ends_in_float(Plan& plan, const Graph& graph, const Recipes& recipes);

//! split_residuals.cc: additions of computed operands leave the product they were fused into.
bool split_residuals(Graph& graph);

}  // namespace kilter
