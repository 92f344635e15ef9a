// LRN: every element divided by a power of the mean square of its neighbours across channels.
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::lrn_op {

int64_t window_size(const Attributes& attributes, size_t rank) {
    const int64_t size = attributes.get_int("size");
    require(size >= 1, "attribute 'size' must be 1 or more, found {}", size);
    require(rank >= 2, "the input must have shape [N, C, …], found rank {}", rank);
    return size;
}

void infer(InferContext& context) {
    if (context.rank(0) >= 0) window_size(context.attributes(), static_cast<size_t>(context.rank(0)));
    context.same_as_input();
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    require_real(x.dtype(), "the input");
    const int64_t size = window_size(context.attributes(), x.shape().size());
    const double alpha = context.attributes().get_float("alpha", 1e-4F);
    const double beta = context.attributes().get_float("beta", 0.75F);
    const double bias = context.attributes().get_float("bias", 1.0F);
    const Tensor reals = to_reals(x);
    const std::span<const double> values = reals.as<double>();
    Tensor y(DType::f64, x.shape());
    const int64_t channels = x.dim(1);
    const int64_t plane = x.size() == 0 ? 1 : extent(x.shape(), 2, x.shape().size());
    for (int64_t i = 0; i < x.size(); ++i) {
        const int64_t channel = i / plane % channels;
        const int64_t first = std::max<int64_t>(channel - (size - 1) / 2, 0);
        const int64_t last = std::min(channel + std::min(size / 2, channels), channels - 1);
        double squares = 0;
        for (int64_t c = first; c <= last; ++c) {
            const double neighbour = values[static_cast<size_t>(i + (c - channel) * plane)];
            squares += neighbour * neighbour;
        }
        const double mean = squares / static_cast<double>(size);
        y.as_mutable<double>()[static_cast<size_t>(i)] =
            values[static_cast<size_t>(i)] / std::pow(bias + alpha * mean, beta);
    }
    store_reals(context, 0, x.dtype(), y);
}

KILTER_OP({.name = "LRN",
           .attributes = {{"alpha", AttributeKind::real},
                          {"beta", AttributeKind::real},
                          {"bias", AttributeKind::real},
                          {"size", AttributeKind::integer, true}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::lrn_op
