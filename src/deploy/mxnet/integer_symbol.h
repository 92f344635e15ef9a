// The symbol with integer operators: what export_model writes, before it is written.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "formats/mxnet/params.h"
#include "formats/mxnet/symbol.h"
#include "kilter/calibration/stats.h"
#include "kilter/deploy/mxnet.h"

namespace kilter::mxnet {

struct IntegerChoice {
    //! Operators that stay in floating point, by name.
    std::unordered_set<std::string> excluded;
    //! By value: a variable's name, or "NODE_output"; "NODE_output1" when the node has several.
    std::unordered_map<std::string, Range> ranges;
};

struct IntegerModel {
    Symbol symbol;
    NamedArrays arrays;
    std::vector<ExportedOperator> operators;
};

IntegerModel make_integer(const Symbol& symbol, const NamedArrays& arrays, const IntegerChoice& choice);

}  // namespace kilter::mxnet
