// What RNN, GRU and LSTM share: shapes, activations, directions, sequence lengths and layout.
// An operator supplies one step; this walks it over time.
#pragma once

#include <functional>

#include "ops/op.h"

namespace kilter {

//! One activation function with its parameters.
struct Activation {
    std::function<double(double)> function;
    double clip = 0;  // bounds the argument when positive
    double operator()(double x) const { return function(clip > 0 ? std::min(std::max(x, -clip), clip) : x); }
};

//! Sizes, after all inputs were checked against each other.
struct Recurrence {
    int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
    bool batch_first = false;
    bool has_cell = false;  // LSTM: a second state
};

//! Weights of one direction as f64: w [gates*hidden, inputs], r [gates*hidden, hidden], b [2*gates*hidden] (zeros when
//! absent), and its activations.
struct RecurrentWeights {
    const double* w = nullptr;
    const double* r = nullptr;
    const double* input_bias = nullptr;
    const double* hidden_bias = nullptr;
    const double* peephole = nullptr;  // LSTM: [3*hidden] or null
    std::vector<Activation> activations;
    int64_t inputs = 0, hidden = 0;

    //! Row `row` of W·x + input_bias, and of R·h + hidden_bias.
    double from_input(int64_t row, const double* x) const;
    double from_hidden(int64_t row, const double* h) const;
};

//! Advances the state h (and c) by one element x of the sequence.
using RecurrentStep = void (*)(const RecurrentWeights&, const Attributes&, const double* x,
                               std::vector<double>& h, std::vector<double>& c);

//! Shape rule for an operator with `gates` gates; `has_cell` says whether it is an LSTM.
void infer_recurrent(InferContext& context, int64_t gates, bool has_cell);
void run_recurrent(KernelContext& context, int64_t gates, bool has_cell,
                   const std::vector<std::string>& default_activations, RecurrentStep step);

//! The attributes that all three have.
std::vector<AttributeSpec> recurrent_attributes(std::vector<AttributeSpec> more = {});

}  // namespace kilter
