// Two models measured side by side, and why operators of the second one are not faster.
#pragma once

#include <string>
#include <vector>

#include "kilter/engine/bench.h"

namespace kilter::cli {

//! One operator of the first model and what became of it in the second.
struct OperatorPair {
    std::string name;  // in the first model
    std::string op_a, op_b;
    std::string kernel_a, kernel_b;
    double milliseconds_a = 0, milliseconds_b = 0;  // b: with the conversions before it
    double conversion = 0;                          // of milliseconds_b
    std::string why;                                // it is not faster; empty when it is
};

struct PairMeasurement {
    BenchResult a, b;
    std::vector<double> ratios;           // time of a over time of b, one per round
    std::vector<OperatorPair> operators;  // in the order of the first model
    double only_a = 0, only_b = 0;        // milliseconds of operators without a counterpart
    double ratio() const;                 // median
};

//! Rounds alternate between both, so that a machine that changes its mind does so for both. `model_b` is what `b` was made of.
PairMeasurement measure_pair(const Program& a, const Program& b, const Model& model_b,
                             const std::vector<Tensor>& inputs_a, const std::vector<Tensor>& inputs_b,
                             const BenchOptions& options);

}  // namespace kilter::cli
