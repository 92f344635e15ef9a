// The weights of a convolution under oneDNN's dimensions.
#pragma once

#include "engine/dnnl/dnnl.h"

namespace kilter::engine {

//! ONNX weights are [out, in/groups, …] for Conv and [in, out/groups, …] for ConvTranspose; oneDNN wants groups in front and,
//! for the transpose, outputs before inputs. This is the ONNX array under oneDNN's dimensions, without moving a byte.
dnnl::memory::desc weights_view(DType dtype, const Shape& shape, int64_t groups, bool transposed);

}  // namespace kilter::engine
