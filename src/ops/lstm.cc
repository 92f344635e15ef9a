// LSTM: input, output and forget gates (i, o, f) around a cell state, with optional peepholes.
#include "ops/recurrent.h"

namespace kilter::lstm_op {

void step(const RecurrentWeights& weights, const Attributes& attributes, const double* x,
          std::vector<double>& h, std::vector<double>& c) {
    const int64_t hidden = weights.hidden;
    const Activation& gate = weights.activations[0];
    const Activation& candidate = weights.activations[1];
    const bool input_forget = attributes.get_int("input_forget") != 0;
    const auto peep = [&](int64_t which, int64_t i, double cell) {
        return weights.peephole == nullptr ? 0.0 : weights.peephole[which * hidden + i] * cell;
    };
    const auto before = [&](int64_t which, int64_t i) {
        return weights.from_input(which * hidden + i, x) + weights.from_hidden(which * hidden + i, h.data());
    };
    std::vector<double> next(h.size());
    for (int64_t i = 0; i < hidden; ++i) {
        const auto at = static_cast<size_t>(i);
        const double enter = gate(before(0, i) + peep(0, i, c[at]));
        const double keep = input_forget ? 1.0 - enter : gate(before(2, i) + peep(2, i, c[at]));
        c[at] = keep * c[at] + enter * candidate(before(3, i));
        // The clip bounds the gates only: the cell itself is never clipped.
        next[at] = gate(before(1, i) + peep(1, i, c[at])) * weights.activations[2].function(c[at]);
    }
    h = std::move(next);
}

void infer(InferContext& context) { infer_recurrent(context, 4, true); }
void kernel(KernelContext& context) { run_recurrent(context, 4, true, {"Sigmoid", "Tanh", "Tanh"}, step); }

KILTER_OP({.name = "LSTM",
           .min_inputs = 3,
           .max_inputs = 8,
           .min_outputs = 0,
           .max_outputs = 3,
           .attributes = recurrent_attributes({{"input_forget", AttributeKind::integer}}),
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::lstm_op
