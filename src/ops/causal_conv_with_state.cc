// CausalConvWithState: a depthwise convolution along time that looks back only, and carries its last inputs to the next call.
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::causal_conv_with_state_op {

Dims state_dims(const Dims& x, const Dims& weights, const std::optional<Dims>& bias,
                const std::optional<Dims>& past) {
    require(x.size() == 3, "the input must have shape [batch, channels, length], found {}", to_string(x));
    require(weights.size() == 3 && agree(weights[0], x[1]) && agree(weights[1], 1) &&
                (!weights[2].known() || weights[2].value >= 1),
            "the weights must have shape [{}, 1, k], found {}", to_string(x[1]), to_string(weights));
    require_vector(bias, x[1], "the bias");
    const Dims state{x[0], x[1], weights[2].known() ? Dim(weights[2].value - 1) : Dim()};
    bool fits = !past || past->size() == 3;
    for (size_t i = 0; past && fits && i < 3; ++i) fits = agree((*past)[i], state[i]);
    require(fits, "the past state must have shape {}, found {}", to_string(state),
            past ? to_string(*past) : "");
    return state;
}

bool has_activation(const Attributes& attributes) {
    const std::string activation = attributes.get_string("activation", "none");
    require(activation == "none" || activation == "silu" || activation == "swish",
            "attribute 'activation' must be none, silu or swish, found '{}'", activation);
    return activation != "none";
}

void infer(InferContext& context) {
    has_activation(context.attributes());
    context.same_as_input();
    if (!context.shape(0) || !context.shape(1)) return context.set_output(1, context.dtype(0));
    context.set_output(1, context.dtype(0),
                       state_dims(*context.shape(0), *context.shape(1), context.shape(2), context.shape(3)));
}

void kernel(KernelContext& context) {
    const Tensor& input = needed(context, 0, "the input");
    require_real(input.dtype(), "the input");
    const Tensor x = to_reals(input);
    const Tensor weights = to_reals(needed(context, 1, "the weights"));
    const Dims dims = state_dims(to_dims(x.shape()), to_dims(weights.shape()), optional_dims(context, 2),
                                 optional_dims(context, 3));
    const bool activate = has_activation(context.attributes());
    const Shape state = ValueType(DType::f64, dims).static_shape();
    const Tensor bias = context.has_input(2) ? to_reals(context.input(2)) : real_zeros({x.dim(1)});
    const Tensor past = context.has_input(3) ? to_reals(context.input(3)) : real_zeros(state);
    Tensor y = real_zeros(x.shape());
    Tensor present = real_zeros(state);
    const int64_t length = x.dim(2), taps = weights.dim(2), carried = taps - 1;
    for (int64_t row = 0; row < x.dim(0) * x.dim(1); ++row) {
        const int64_t channel = row % x.dim(1);
        // Position p of the past followed by the input.
        const auto at = [&](int64_t p) {
            return p < carried ? past.as<double>()[static_cast<size_t>(row * carried + p)]
                               : x.as<double>()[static_cast<size_t>(row * length + p - carried)];
        };
        for (int64_t i = 0; i < length; ++i) {
            double sum = bias.as<double>()[static_cast<size_t>(channel)];
            for (int64_t tap = 0; tap < taps; ++tap)
                sum += weights.as<double>()[static_cast<size_t>(channel * taps + tap)] * at(i + tap);
            y.as_mutable<double>()[static_cast<size_t>(row * length + i)] =
                activate ? sum / (1.0 + std::exp(-sum)) : sum;
        }
        for (int64_t i = 0; i < carried; ++i)
            present.as_mutable<double>()[static_cast<size_t>(row * carried + i)] = at(length + i);
    }
    store_reals(context, 0, input.dtype(), y);
    if (context.wants_output(1)) store_reals(context, 1, input.dtype(), present);
}

KILTER_OP({.name = "CausalConvWithState",
           .min_inputs = 2,
           .max_inputs = 4,
           .max_outputs = 2,
           .attributes = {{"activation", AttributeKind::text}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::causal_conv_with_state_op
