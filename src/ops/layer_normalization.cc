// LayerNormalization and RMSNormalization: normalize over the trailing axes, then scale (and shift).
#include <cmath>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/numeric.h"

namespace kilter::layer_normalization_op {

size_t first_axis(const Attributes& attributes, size_t rank) {
    return static_cast<size_t>(normalize_axis(attributes.get_int("axis", -1), static_cast<int64_t>(rank)));
}

// Scale and bias broadcast to the input, never the other way round.
void require_broadcast(const std::optional<Dims>& dims, const Dims& x, std::string_view what) {
    if (!dims) return;
    bool fits = dims->size() <= x.size();
    for (size_t i = 0; fits && i < dims->size(); ++i) {
        const Dim& mine = (*dims)[dims->size() - 1 - i];
        fits = agree(mine, x[x.size() - 1 - i]) || agree(mine, 1);
    }
    require(fits, "{} {} does not broadcast to the input {}", what, to_string(*dims), to_string(x));
}

// The type of the statistics; the codes are those of ONNX.
DType stash_type(const Attributes& attributes) {
    const int64_t code = attributes.get_int("stash_type", 1);
    if (code == 1) return DType::f32;
    if (code == 10) return DType::f16;
    if (code == 11) return DType::f64;
    if (code == 16) return DType::bf16;
    fail("attribute 'stash_type' must name a floating-point type (1, 10, 11 or 16), found {}", code);
}

Dims statistics_dims(const Dims& x, size_t axis) {
    Dims dims = x;
    for (size_t i = axis; i < dims.size(); ++i) dims[i] = 1;
    return dims;
}

void infer(InferContext& context) {
    const DType stash = stash_type(context.attributes());
    context.same_as_input();
    if (!context.shape(0)) {
        context.set_output(1, stash);
        context.set_output(2, stash);
        return;
    }
    const Dims& x = *context.shape(0);
    const Dims statistics = statistics_dims(x, first_axis(context.attributes(), x.size()));
    require_broadcast(context.shape(1), x, "scale");
    require_broadcast(context.shape(2), x, "the bias");
    context.set_output(1, stash, statistics);
    context.set_output(2, stash, statistics);
}

void normalize(KernelContext& context, bool subtract_mean) {
    const Tensor& x = needed(context, 0, "the input");
    require_real(x.dtype(), "the input");
    const Tensor scale = to_reals(needed(context, 1, "scale"));
    const Tensor bias = context.has_input(2) ? to_reals(context.input(2)) : Tensor();
    const DType stash = stash_type(context.attributes());
    const Dims dims = to_dims(x.shape());
    require_broadcast(to_dims(scale.shape()), dims, "scale");
    require_broadcast(optional_dims(context, 2), dims, "the bias");
    const size_t axis = first_axis(context.attributes(), dims.size());
    const double epsilon = context.attributes().get_float("epsilon", 1e-5F);

    const Shape statistics = ValueType(DType::f64, statistics_dims(dims, axis)).static_shape();
    Tensor means = real_zeros(statistics);
    Tensor inverse_deviations = real_zeros(statistics);
    Tensor y = to_reals(x).clone();
    const std::span<double> values = y.as_mutable<double>();
    const auto count = static_cast<size_t>(x.size() == 0 ? 0 : extent(x.shape(), axis, dims.size()));
    const size_t groups = count == 0 ? 0 : values.size() / count;
    for (size_t group = 0; group < groups; ++group) {
        const std::span<double> line = values.subspan(group * count, count);
        double sum = 0;
        for (const double value : line) sum += value;
        const double mean = subtract_mean ? sum / static_cast<double>(count) : 0.0;
        double squares = 0;
        for (double& value : line) {
            value -= mean;
            squares += value * value;
        }
        const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(count) + epsilon);
        for (double& value : line) value *= inverse;
        means.as_mutable<double>()[group] = mean;
        inverse_deviations.as_mutable<double>()[group] = inverse;
    }
    BroadcastIndex scale_index(scale.shape(), x.shape());
    BroadcastIndex bias_index(bias.shape(), x.shape());
    for (double& value : values) {
        value *= scale.as<double>()[static_cast<size_t>(scale_index.offset())];
        if (!bias.empty()) value += bias.as<double>()[static_cast<size_t>(bias_index.offset())];
        scale_index.next();
        bias_index.next();
    }
    store_reals(context, 0, x.dtype(), y);
    if (context.wants_output(1)) store_reals(context, 1, stash, means);
    if (context.wants_output(2)) store_reals(context, 2, stash, inverse_deviations);
}

void layer_normalization(KernelContext& context) { normalize(context, true); }
void rms_normalization(KernelContext& context) { normalize(context, false); }

KILTER_OP({.name = "LayerNormalization",
           .min_inputs = 2,
           .max_inputs = 3,
           .max_outputs = 3,
           .attributes = {{"axis", AttributeKind::integer},
                          {"epsilon", AttributeKind::real},
                          {"stash_type", AttributeKind::integer}},
           .infer = infer,
           .kernel = layer_normalization});

KILTER_OP({.name = "RMSNormalization",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"axis", AttributeKind::integer},
                          {"epsilon", AttributeKind::real},
                          {"stash_type", AttributeKind::integer}},
           .infer = infer,
           .kernel = rms_normalization});

}  // namespace kilter::layer_normalization_op
