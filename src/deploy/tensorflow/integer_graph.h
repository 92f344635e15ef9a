// The INT8 GraphDef that stock TensorFlow runs: islands of oneDNN's integer operators in an otherwise untouched graph.
#pragma once

#include <functional>

#include "deploy/tensorflow/islands.h"

namespace kilter::tensorflow {

struct IntegerReport {
    std::vector<ConvertedOperator> operators;
    size_t quantize = 0, dequantize = 0;  // borders of the islands
};

//! Rewrites the islands of `graph`, which has been through optimize_for_quantization, to integer operators. Throws Error when
//! a range that is needed is missing or not finite.
//! `before_fusing` is shown the graph with its convolutions and requantizations apart.
IntegerReport write_integer_graph(TfGraph& graph, const IslandOptions& options, const Ranges& ranges,
                                  const std::function<void(const TfGraph&)>& before_fusing = {});

}  // namespace kilter::tensorflow
