// InstanceNormalization and GroupNormalization: each image's channels normalized, alone or in groups, then scaled and shifted.
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::group_normalization_op {

void check(const Dims& x, const std::optional<Dims>& scale, const std::optional<Dims>& bias) {
    require(x.size() >= 2, "the input must have shape [N, C, …], found {}", to_string(x));
    require_vector(scale, x[1], "scale");
    require_vector(bias, x[1], "the bias");
}

int64_t group_count(const Attributes& attributes, const Dim& channels) {
    const int64_t groups = attributes.get_int("num_groups");
    require(groups >= 1, "attribute 'num_groups' must be 1 or more, found {}", groups);
    require(!channels.known() || channels.value % groups == 0, "{} channels cannot form {} groups",
            channels.value, groups);
    return groups;
}

void instance_infer(InferContext& context) {
    if (context.shape(0)) check(*context.shape(0), context.shape(1), context.shape(2));
    context.same_as_input();
}

void group_infer(InferContext& context) {
    if (context.shape(0)) {
        check(*context.shape(0), context.shape(1), context.shape(2));
        group_count(context.attributes(), (*context.shape(0))[1]);
    }
    context.same_as_input();
}

void normalize(KernelContext& context, bool per_channel) {
    const Tensor& x = needed(context, 0, "the input");
    require_real(x.dtype(), "the input");
    const Tensor scale = to_reals(needed(context, 1, "scale"));
    const Tensor bias = to_reals(needed(context, 2, "the bias"));
    check(to_dims(x.shape()), to_dims(scale.shape()), to_dims(bias.shape()));
    const int64_t groups = per_channel ? x.dim(1) : group_count(context.attributes(), x.dim(1));
    const double epsilon = context.attributes().get_float("epsilon", 1e-5F);
    Tensor y = to_reals(x).clone();
    const std::span<double> values = y.as_mutable<double>();
    const size_t lines = values.empty() ? 0 : static_cast<size_t>(x.dim(0) * groups);
    const size_t count = lines == 0 ? 0 : values.size() / lines;
    const auto channels = static_cast<size_t>(x.dim(1));
    const size_t plane = lines == 0 ? 0 : values.size() / (static_cast<size_t>(x.dim(0)) * channels);
    for (size_t i = 0; i < lines; ++i) {
        const std::span<double> line = values.subspan(i * count, count);
        double sum = 0;
        for (const double value : line) sum += value;
        const double mean = sum / static_cast<double>(count);
        double squares = 0;
        for (const double value : line) squares += (value - mean) * (value - mean);
        const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(count) + epsilon);
        for (size_t j = 0; j < count; ++j) {
            const size_t channel = (i * count + j) / plane % channels;
            line[j] = (line[j] - mean) * inverse * scale.as<double>()[channel] + bias.as<double>()[channel];
        }
    }
    store_reals(context, 0, x.dtype(), y);
}

void instance_normalization(KernelContext& context) { normalize(context, true); }
void group_normalization(KernelContext& context) { normalize(context, false); }

KILTER_OP({.name = "InstanceNormalization",
           .min_inputs = 3,
           .max_inputs = 3,
           .attributes = {{"epsilon", AttributeKind::real}},
           .infer = instance_infer,
           .kernel = instance_normalization});

KILTER_OP({.name = "GroupNormalization",
           .min_inputs = 3,
           .max_inputs = 3,
           .attributes = {{"epsilon", AttributeKind::real},
                          {"num_groups", AttributeKind::integer, true},
                          {"stash_type", AttributeKind::integer}},
           .infer = group_infer,
           .kernel = group_normalization});

}  // namespace kilter::group_normalization_op
