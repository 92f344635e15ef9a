#include "kilter/quantization/params.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/convert.h"
#include "base/fail.h"
#include "quantization/names.h"

namespace kilter {
namespace {

constexpr Word<Scheme> kSchemes[] = {{Scheme::asym, "asym"}, {Scheme::sym, "sym"}};
constexpr Word<Granularity> kGranularities[] = {{Granularity::per_channel, "per-channel"},
                                                {Granularity::per_tensor, "per-tensor"},
                                                {Granularity::per_channel, "channel-wise"},  // MXNet's words
                                                {Granularity::per_tensor, "tensor-wise"}};

// The product of two scales is a scale too, that of the bias: two of these still make a normal float.
constexpr double kSmallestScale = 0x1p-62;

// Channels below this part of the largest one are next to zero: their own scale would only spend bits on noise and push the
// bias out of int32.
constexpr double kNearZeroChannel = 0.01;

// Half of int32: runtimes add the bias to the accumulator before anything else.
constexpr double kLargestBias = 0x1p30;

float as_scale(double scale) { return static_cast<float>(std::max(scale, kSmallestScale)); }

struct Limits {
    int32_t lowest, highest;
};

Limits limits(DType dtype, int bits) {
    if (dtype == DType::i32)
        return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    require(dtype == DType::u8 || dtype == DType::i8, "cannot quantize to {}; expected u8 or i8",
            name(dtype));
    require(bits >= 2 && bits <= 8, "cannot quantize to {} bits; expected 2 to 8", bits);
    if (dtype == DType::u8) return {0, (1 << bits) - 1};
    return {-(1 << (bits - 1)), (1 << (bits - 1)) - 1};
}

// Elements of a tensor as outer x channels x inner; one channel when there is no axis.
struct Slices {
    int64_t channels = 1, inner = 1;

    Slices(const Tensor& tensor, int axis) : inner(tensor.size()) {
        if (axis < 0) return;
        require(axis < tensor.rank(), "axis {} of a tensor of shape {}", axis, to_string(tensor.shape()));
        channels = tensor.dim(axis);
        inner = 1;
        for (int i = axis + 1; i < tensor.rank(); ++i) inner *= tensor.dim(i);
    }
    size_t channel(size_t index) const {
        return channels == 1 ? 0 : index / static_cast<size_t>(inner) % static_cast<size_t>(channels);
    }
};

void check(const Tensor& tensor, const QuantParams& params) {
    const Slices slices(tensor, params.axis);
    require(static_cast<int64_t>(params.scales.size()) == slices.channels &&
                params.zero_points.size() == params.scales.size(),
            "{} scales and {} zero points for {} channels", params.scales.size(), params.zero_points.size(),
            slices.channels);
}

}  // namespace

std::string_view name(Scheme scheme) { return word_of(kSchemes, scheme); }
std::string_view name(Granularity granularity) { return word_of(kGranularities, granularity); }
Scheme scheme(std::string_view name) { return parse_word(kSchemes, "scheme", name); }
Granularity granularity(std::string_view name) { return parse_word(kGranularities, "granularity", name); }

// docs/arithmetic.md, "Activations"
QuantParams activation_params(Range range, DType dtype, Scheme scheme, int bits) {
    const Limits limit = limits(dtype, bits);
    require(std::isfinite(range.min) && std::isfinite(range.max) && range.min <= range.max,
            "cannot quantize the range [{}, {}]", range.min, range.max);
    const double low = std::min(range.min, 0.0F);
    const double high = std::max(range.max, 0.0F);
    QuantParams params{dtype, std::vector<float>(1, 1.0F), std::vector<int32_t>(1, 0), -1};
    if (low == high) {
        if (dtype == DType::u8 && scheme == Scheme::sym) params.zero_points[0] = (limit.highest + 1) / 2;
        return params;
    }
    const double steps = static_cast<double>(limit.highest) - limit.lowest;
    if (dtype == DType::u8 && low == 0) {
        params.scales[0] = as_scale(high / steps);
    } else if (scheme == Scheme::sym) {
        const int32_t middle = dtype == DType::u8 ? (limit.highest + 1) / 2 : 0;
        params.scales[0] = as_scale(std::max(-low, high) / (limit.highest - middle));
        params.zero_points[0] = middle;
    } else {
        params.scales[0] = as_scale((high - low) / steps);
        const double zero = limit.lowest - low / params.scales[0];
        params.zero_points[0] =
            std::clamp(static_cast<int32_t>(std::nearbyint(zero)), limit.lowest, limit.highest);
    }
    return params;
}

// docs/arithmetic.md, "Weights"
QuantParams weight_params(const Tensor& weights, int axis, int bits) {
    const Limits limit = limits(DType::i8, bits);
    const Slices slices(weights, axis);
    const Tensor reals = weights.converted(DType::f32);
    std::vector<float> largest(static_cast<size_t>(slices.channels), 0.0F);
    const std::span<const float> values = reals.as<float>();
    for (size_t i = 0; i < values.size(); ++i) {
        require(std::isfinite(values[i]), "the weights contain {}", values[i]);
        float& channel = largest[slices.channel(i)];
        channel = std::max(channel, std::fabs(values[i]));
    }
    const float overall = largest.empty() ? 0.0F : *std::ranges::max_element(largest);
    QuantParams params{DType::i8, {}, std::vector<int32_t>(largest.size(), 0), axis};
    for (const float channel : largest) {
        const double floored = std::max<double>(channel, kNearZeroChannel * overall);
        params.scales.push_back(floored == 0 ? 1.0F : as_scale(floored / limit.highest));
    }
    return params;
}

Tensor quantize_tensor(const Tensor& tensor, const QuantParams& params, int bits) {
    check(tensor, params);
    Limits limit = limits(params.dtype, bits);
    if (params.dtype == DType::i8 &&
        std::ranges::all_of(params.zero_points, [](int32_t zero) { return zero == 0; }))
        limit.lowest = -limit.highest;
    const Slices slices(tensor, params.axis);
    const Tensor reals = tensor.converted(DType::f32);
    const std::span<const float> values = reals.as<float>();
    Tensor result(params.dtype, tensor.shape());
    for (size_t i = 0; i < values.size(); ++i) {
        const size_t channel = slices.channel(i);
        const double rounded = std::nearbyint(static_cast<double>(values[i] / params.scales[channel])) +
                               params.zero_points[channel];
        const double kept = std::clamp<double>(rounded, limit.lowest, limit.highest);
        store_int(params.dtype, result.raw_mutable(), static_cast<int64_t>(i), static_cast<int64_t>(kept));
    }
    return result;
}

Tensor dequantize_tensor(const Tensor& tensor, const QuantParams& params) {
    check(tensor, params);
    const Slices slices(tensor, params.axis);
    Tensor result(DType::f32, tensor.shape());
    const std::span<float> values = result.as_mutable<float>();
    for (size_t i = 0; i < values.size(); ++i) {
        const size_t channel = slices.channel(i);
        const int64_t integer = load_int(tensor.dtype(), tensor.raw(), static_cast<int64_t>(i));
        values[i] = static_cast<float>(static_cast<double>(integer - params.zero_points[channel]) *
                                       static_cast<double>(params.scales[channel]));
    }
    return result;
}

// docs/arithmetic.md, "Bias"
bool fit_bias(QuantParams& weights, const Tensor& bias, float x_scale) {
    const std::vector<double> values = bias.to_doubles();
    bool raised = false;
    for (size_t i = 0; i < values.size(); ++i) {
        // A single scale serves all channels, a single bias value serves all scales.
        for (size_t j = 0; j < weights.scales.size(); ++j) {
            if (weights.scales.size() > 1 && values.size() > 1 && i != j) continue;
            const double needed = std::fabs(values[i]) / (static_cast<double>(x_scale) * kLargestBias);
            if (needed <= weights.scales[j]) continue;
            weights.scales[j] = std::nextafter(static_cast<float>(needed), std::numeric_limits<float>::max());
            raised = true;
        }
    }
    return raised;
}

Tensor quantize_bias(const Tensor& bias, const QuantParams& weights, float x_scale, QuantParams& params) {
    const size_t count = bias.size() == 1 ? 1 : weights.scales.size();
    params = {DType::i32, {}, std::vector<int32_t>(count, 0), count == 1 ? -1 : 0};
    for (size_t i = 0; i < count; ++i) params.scales.push_back(x_scale * weights.scales[i]);
    const std::vector<double> values = bias.to_doubles();
    Tensor result(DType::i32, bias.shape());
    const std::span<int32_t> integers = result.as_mutable<int32_t>();
    for (size_t i = 0; i < values.size(); ++i) {
        const double scale = params.scales[count == 1 ? 0 : i];
        integers[i] =
            static_cast<int32_t>(std::clamp(std::nearbyint(values[i] / scale), -2147483648.0, 2147483647.0));
    }
    return result;
}

}  // namespace kilter
