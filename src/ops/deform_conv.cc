// DeformConv: a convolution of images whose taps are moved by learned offsets, optionally weighted by a mask.
#include <cmath>

#include "base/fail.h"
#include "ops/convolution.h"
#include "ops/numeric.h"

namespace kilter::deform_conv_op {

int64_t offset_groups(const Attributes& attributes, const Dim& channels) {
    const int64_t groups = attributes.get_int("offset_group", 1);
    require(groups >= 1 && groups <= kWindowLimit, "attribute 'offset_group' must be 1 or more, found {}",
            groups);
    require(!channels.known() || channels.value % groups == 0, "{} channels cannot form {} offset groups",
            channels.value, groups);
    return groups;
}

Dims deform_dims(const Attributes& attributes, const Dims& x, const Dims& weights,
                 const std::optional<Dims>& offset, const std::optional<Dims>& bias,
                 const std::optional<Dims>& mask) {
    require(x.size() == 4, "the input must have shape [N, C, H, W], found {}", to_string(x));
    const Dims result = conv_dims(attributes, x, weights, bias);
    const int64_t groups = offset_groups(attributes, x[1]);
    const auto check = [&](const std::optional<Dims>& dims, int64_t per_tap, std::string_view what) {
        if (!dims) return;
        Dim channels;
        if (weights[2].known() && weights[3].known()) {
            int64_t count = 0;
            require(!__builtin_mul_overflow(weights[2].value * weights[3].value, groups * per_tap, &count),
                    "the kernel is too large");
            channels = count;
        }
        const Dims expected{x[0], channels, result[2], result[3]};
        bool fits = dims->size() == 4;
        for (size_t i = 0; fits && i < 4; ++i) fits = agree((*dims)[i], expected[i]);
        require(fits, "the {} must have shape {}, found {}", what, to_string(expected), to_string(*dims));
    };
    check(offset, 2, "offset");
    check(mask, 1, "mask");
    return result;
}

void infer(InferContext& context) {
    if (!context.shape(0) || !context.shape(1)) return context.set_output(0, context.dtype(0));
    context.set_output(0, context.dtype(0),
                       deform_dims(context.attributes(), *context.shape(0), *context.shape(1),
                                   context.shape(2), context.shape(3), context.shape(4)));
}

// Bilinear sample with zeros around the image.
double sample(const double* plane, int64_t height, int64_t width, double y, double x) {
    if (!(y > -1 && x > -1 && y < static_cast<double>(height) && x < static_cast<double>(width))) return 0;
    const auto top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
    const double down = y - static_cast<double>(top), across = x - static_cast<double>(left);
    const auto at = [&](int64_t row, int64_t column) {
        return row < 0 || column < 0 || row >= height || column >= width ? 0.0 : plane[row * width + column];
    };
    return (1 - down) * ((1 - across) * at(top, left) + across * at(top, left + 1)) +
           down * ((1 - across) * at(top + 1, left) + across * at(top + 1, left + 1));
}

void kernel(KernelContext& context) {
    const Tensor& input = needed(context, 0, "the input");
    require_real(input.dtype(), "the input");
    const Tensor x = to_reals(input);
    const Tensor weights = to_reals(needed(context, 1, "the weights"));
    const Tensor offset = to_reals(needed(context, 2, "the offset"));
    const Tensor bias = context.has_input(3) ? to_reals(context.input(3)) : Tensor();
    const Tensor mask = context.has_input(4) ? to_reals(context.input(4)) : Tensor();
    const Attributes& attributes = context.attributes();
    const Dims dims =
        deform_dims(attributes, to_dims(x.shape()), to_dims(weights.shape()), to_dims(offset.shape()),
                    optional_dims(context, 3), optional_dims(context, 4));
    Tensor y = real_zeros(ValueType(DType::f64, dims).static_shape());
    Window window = read_window(attributes, {weights.dim(2), weights.dim(3)});
    window.resolve_pads({x.dim(2), x.dim(3)});
    const int64_t groups = attributes.get_int("group", 1);
    const int64_t moved_groups = offset_groups(attributes, x.dim(1));
    const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
    const int64_t taps = weights.dim(2) * weights.dim(3);
    const int64_t outputs = y.dim(1), points = y.dim(2) * y.dim(3);
    for (int64_t i = 0; i < y.size(); ++i) {
        const int64_t image = i / points / outputs, channel = i / points % outputs, point = i % points;
        const double top = static_cast<double>(point / y.dim(3) * window.strides[0] - window.pads_begin[0]);
        const double left = static_cast<double>(point % y.dim(3) * window.strides[1] - window.pads_begin[1]);
        const int64_t group = channel / (outputs / groups);
        double sum = bias.empty() ? 0.0 : bias.as<double>()[static_cast<size_t>(channel)];
        for (int64_t c = 0; c < weights.dim(1); ++c) {
            const int64_t source = group * weights.dim(1) + c;
            const int64_t moved = image * moved_groups + source / (channels / moved_groups);
            const double* plane = x.as<double>().data() + (image * channels + source) * height * width;
            for (int64_t tap = 0; tap < taps; ++tap) {
                const double* shift = offset.as<double>().data() + (moved * taps + tap) * 2 * points + point;
                const double row =
                    top + static_cast<double>(tap / weights.dim(3) * window.dilations[0]) + shift[0];
                const double column =
                    left + static_cast<double>(tap % weights.dim(3) * window.dilations[1]) + shift[points];
                double value = sample(plane, height, width, row, column);
                if (!mask.empty())
                    value *= mask.as<double>()[static_cast<size_t>((moved * taps + tap) * points + point)];
                sum += value *
                       weights.as<double>()[static_cast<size_t>((channel * weights.dim(1) + c) * taps + tap)];
            }
        }
        y.as_mutable<double>()[static_cast<size_t>(i)] = sum;
    }
    store_reals(context, 0, input.dtype(), y);
}

KILTER_OP({.name = "DeformConv",
           .min_inputs = 3,
           .max_inputs = 5,
           .attributes = {{"dilations", AttributeKind::integers},
                          {"group", AttributeKind::integer},
                          {"kernel_shape", AttributeKind::integers},
                          {"offset_group", AttributeKind::integer},
                          {"pads", AttributeKind::integers},
                          {"strides", AttributeKind::integers}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::deform_conv_op
