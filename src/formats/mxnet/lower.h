// From an MXNet symbol and its arrays to a Model: nodes become operators with ONNX meaning, under their MXNet names.
#pragma once

#include "formats/mxnet/params.h"
#include "formats/mxnet/symbol.h"
#include "kilter/formats/mxnet.h"

namespace kilter::mxnet {

//! Domain of the operators that stay what they were: nodes for which kilter has no meaning. They load and print, but do not run.
inline constexpr std::string_view kOpaqueDomain = "mxnet";

//! Variables without an array are inputs, but for labels that only training reads.
Model lower(const Symbol& symbol, const NamedArrays& arrays, const ReadOptions& options = {});

}  // namespace kilter::mxnet
