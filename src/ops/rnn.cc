// RNN: h = f(W·x + R·h + b).
#include "ops/recurrent.h"

namespace kilter::rnn_op {

void step(const RecurrentWeights& weights, const Attributes&, const double* x, std::vector<double>& h,
          std::vector<double>&) {
    std::vector<double> next(h.size());
    for (int64_t i = 0; i < weights.hidden; ++i)
        next[static_cast<size_t>(i)] =
            weights.activations[0](weights.from_input(i, x) + weights.from_hidden(i, h.data()));
    h = std::move(next);
}

void infer(InferContext& context) { infer_recurrent(context, 1, false); }
void kernel(KernelContext& context) { run_recurrent(context, 1, false, {"Tanh"}, step); }

KILTER_OP({.name = "RNN",
           .min_inputs = 3,
           .max_inputs = 6,
           .min_outputs = 0,
           .max_outputs = 2,
           .attributes = recurrent_attributes(),
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::rnn_op
