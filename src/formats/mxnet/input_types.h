// What is known about the inputs of a symbol: files seldom say it.
#pragma once

#include <unordered_map>

#include "formats/mxnet/symbol.h"
#include "kilter/graph/type.h"

namespace kilter::mxnet {

//! By the attributes of the variable, or by the first convolution that reads it: it tells the rank and the number of channels.
ValueType input_type(const Symbol& symbol, size_t variable,
                     const std::unordered_map<std::string, Tensor>& arrays);

//! Is it there for training alone: the label of an output operator?
bool is_label(const Symbol& symbol, size_t variable);

}  // namespace kilter::mxnet
