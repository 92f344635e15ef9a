// The arithmetic of Conv and ConvTranspose on doubles, and the shape rules their variants share.
#pragma once

#include "ops/window.h"

namespace kilter {

//! A convolution whose every number is known; one or two spatial axes are written as three with leading ones.
struct Convolution {
    int64_t batch = 0, groups = 1;
    int64_t inputs = 0, outputs = 0;  // channels per group
    Triple input{}, output{}, kernel{}, stride{}, dilation{}, pad{};

    int64_t input_size() const { return input[0] * input[1] * input[2]; }
    int64_t output_size() const { return output[0] * output[1] * output[2]; }
};

//! Result shape of Conv; throws when input, weights, bias and attributes do not fit together.
Dims conv_dims(const Attributes& attributes, const Dims& x, const Dims& weights,
               const std::optional<Dims>& bias);
Dims conv_transpose_dims(const Attributes& attributes, const Dims& x, const Dims& weights,
                         const std::optional<Dims>& bias);

//! Conv of f64 tensors; `bias` may be empty. Shapes are checked.
Tensor conv(const Attributes& attributes, const Tensor& x, const Tensor& weights, const Tensor& bias);
Tensor conv_transpose(const Attributes& attributes, const Tensor& x, const Tensor& weights,
                      const Tensor& bias);

}  // namespace kilter
