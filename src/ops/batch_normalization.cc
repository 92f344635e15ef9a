// BatchNormalization: scale * (x - mean) / sqrt(var + epsilon) + bias per channel, with given or (training) own statistics.
#include <array>
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::batch_normalization_op {

void check(const std::optional<Dims>& x, const std::array<std::optional<Dims>, 4>& vectors) {
    constexpr std::array<std::string_view, 4> kNames{"scale", "the bias", "the mean", "the variance"};
    require(!x || !x->empty(), "the input must have shape [N, C, …], found a scalar");
    // A list [N] is N samples of one channel.
    const Dim channels = !x ? Dim() : x->size() == 1 ? Dim(1) : (*x)[1];
    for (size_t i = 0; i < vectors.size(); ++i) require_vector(vectors[i], channels, kNames[i]);
}

void infer(InferContext& context) {
    check(context.shape(0), {context.shape(1), context.shape(2), context.shape(3), context.shape(4)});
    context.same_as_input();
    context.same_as_input(1, 3);
    context.same_as_input(2, 4);
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    require_real(x.dtype(), "the input");
    const Tensor scale = to_reals(needed(context, 1, "scale"));
    const Tensor bias = to_reals(needed(context, 2, "the bias"));
    const Tensor mean = to_reals(needed(context, 3, "the mean"));
    const Tensor variance = to_reals(needed(context, 4, "the variance"));
    check(to_dims(x.shape()),
          {to_dims(scale.shape()), to_dims(bias.shape()), to_dims(mean.shape()), to_dims(variance.shape())});
    const double epsilon = context.attributes().get_float("epsilon", 1e-5F);
    const double momentum = context.attributes().get_float("momentum", 0.9F);
    const bool training = context.attributes().get_int("training_mode") != 0;
    const Tensor values = to_reals(x);
    const std::span<const double> elements = values.as<double>();
    Tensor y(DType::f64, x.shape());
    Tensor new_mean = mean.clone();
    Tensor new_variance = variance.clone();
    const auto channels = static_cast<size_t>(x.rank() == 1 ? 1 : x.dim(1));
    const auto plane = static_cast<size_t>(extent(x.shape(), 2, x.shape().size()));
    const size_t images = elements.empty() ? 0 : elements.size() / (channels * plane);
    for (size_t channel = 0; channel < channels && images > 0; ++channel) {
        double center = mean.as<double>()[channel];
        double spread = variance.as<double>()[channel];
        const auto for_each = [&](auto visit) {
            for (size_t image = 0; image < images; ++image)
                for (size_t i = 0; i < plane; ++i) visit((image * channels + channel) * plane + i);
        };
        if (training) {
            const auto count = static_cast<double>(images * plane);
            double sum = 0;
            for_each([&](size_t i) { sum += elements[i]; });
            center = sum / count;
            double squares = 0;
            for_each([&](size_t i) { squares += (elements[i] - center) * (elements[i] - center); });
            spread = squares / count;
            double& running_mean = new_mean.as_mutable<double>()[channel];
            double& running_variance = new_variance.as_mutable<double>()[channel];
            running_mean = running_mean * momentum + center * (1 - momentum);
            running_variance = running_variance * momentum + spread * (1 - momentum);
        }
        const double factor = scale.as<double>()[channel] / std::sqrt(spread + epsilon);
        const double shift = bias.as<double>()[channel];
        for_each([&](size_t i) { y.as_mutable<double>()[i] = (elements[i] - center) * factor + shift; });
    }
    store_reals(context, 0, x.dtype(), y);
    if (context.wants_output(1)) store_reals(context, 1, context.input(3).dtype(), new_mean);
    if (context.wants_output(2)) store_reals(context, 2, context.input(4).dtype(), new_variance);
}

KILTER_OP({.name = "BatchNormalization",
           .min_inputs = 5,
           .max_inputs = 5,
           .max_outputs = 3,
           .attributes = {{"epsilon", AttributeKind::real},
                          {"momentum", AttributeKind::real},
                          {"training_mode", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::batch_normalization_op
