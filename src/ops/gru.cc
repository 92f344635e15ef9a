// GRU: update and reset gates (z, r) around a candidate state.
#include "ops/recurrent.h"

namespace kilter::gru_op {

void step(const RecurrentWeights& weights, const Attributes& attributes, const double* x,
          std::vector<double>& h, std::vector<double>&) {
    const int64_t hidden = weights.hidden;
    const Activation& gate = weights.activations[0];
    const bool linear_before_reset = attributes.get_int("linear_before_reset") != 0;
    std::vector<double> reset(h.size()), next(h.size());
    for (int64_t i = 0; i < hidden; ++i)
        reset[static_cast<size_t>(i)] =
            gate(weights.from_input(hidden + i, x) + weights.from_hidden(hidden + i, h.data()));
    std::vector<double> kept = h;  // what the reset gate lets through of the state
    for (size_t i = 0; i < h.size(); ++i) kept[i] *= reset[i];
    for (int64_t i = 0; i < hidden; ++i) {
        const auto at = static_cast<size_t>(i);
        const int64_t row = 2 * hidden + i;
        const double recurrent = linear_before_reset ? reset[at] * weights.from_hidden(row, h.data())
                                                     : weights.from_hidden(row, kept.data());
        const double candidate = weights.activations[1](weights.from_input(row, x) + recurrent);
        const double update = gate(weights.from_input(i, x) + weights.from_hidden(i, h.data()));
        next[at] = (1 - update) * candidate + update * h[at];
    }
    h = std::move(next);
}

void infer(InferContext& context) { infer_recurrent(context, 3, false); }
void kernel(KernelContext& context) { run_recurrent(context, 3, false, {"Sigmoid", "Tanh"}, step); }

KILTER_OP({.name = "GRU",
           .min_inputs = 3,
           .max_inputs = 6,
           .min_outputs = 0,
           .max_outputs = 2,
           .attributes = recurrent_attributes({{"linear_before_reset", AttributeKind::integer}}),
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::gru_op
