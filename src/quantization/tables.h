// Embedding tables as integers: a quarter of the bytes, and the numbers of a row become floats when it is looked up.
#pragma once

#include <map>

#include "quantization/cache.h"

namespace kilter {

//! Operators that look up the same table share the integers.
class TableQuantizer {
  public:
    //! `cache` may be null.
    TableQuantizer(Graph& graph, QuantizationCache* cache) : graph_(graph), cache_(cache) {}

    //! Makes Gather(table, rows) a DequantizeLinear of Gather(integers, rows). Per channel means per column: each has a scale
    //! of its own, because the columns of trained embeddings differ in size far more than the rows.
    void quantize(Node& gather, const WeightChoice& choice);

  private:
    struct Made {
        Value *integers, *scales, *zero_points;
        bool per_column;
    };
    const Made& make(Value* table, const WeightChoice& choice);

    Graph& graph_;
    QuantizationCache* cache_;
    std::map<std::string, Made> made_;
};

}  // namespace kilter
