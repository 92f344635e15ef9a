#include "ops/quantized.h"

#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/numeric.h"

namespace kilter {

Tensor per_slice(const Tensor& parameter, int axis, int rank, std::string_view what) {
    Tensor reals = to_reals(parameter);
    if (reals.size() == 1) return reals.reshaped({});
    if (reals.rank() != 1) return reals;
    require(axis >= 0 && axis < rank, "{} must be one number, found {}", what, to_string(parameter.shape()));
    Shape shape(static_cast<size_t>(rank - axis), 1);
    shape[0] = reals.size();
    return reals.reshaped(std::move(shape));
}

Tensor centered(const Tensor& quantized, const Tensor& zero_point) {
    require(is_integer(quantized.dtype()) || is_float(quantized.dtype()),
            "cannot compute with a tensor of {}", name(quantized.dtype()));
    Tensor reals = to_reals(quantized).clone();
    if (zero_point.empty()) return reals;
    BroadcastIndex index(zero_point.shape(), reals.shape());
    for (double& value : reals.as_mutable<double>()) {
        value -= zero_point.as<double>()[static_cast<size_t>(index.offset())];
        index.next();
    }
    return reals;
}

void scale_by(Tensor& values, const Tensor& factor) {
    BroadcastIndex index(factor.shape(), values.shape());
    for (double& value : values.as_mutable<double>()) {
        value *= factor.as<double>()[static_cast<size_t>(index.offset())];
        index.next();
    }
}

void store_quantized(KernelContext& context, size_t index, const Tensor& values, const Tensor& scale,
                     const Tensor& zero_point) {
    const DType dtype = zero_point.dtype();
    Tensor& result = context.output(index, dtype, values.shape());
    const Tensor scales = to_reals(scale);
    const Tensor zeros = to_reals(zero_point);
    require(scales.size() == 1 && zeros.size() == 1,
            "the output's scale and zero point must be single numbers");
    const double factor = scales.as<double>()[0];
    const double zero = zeros.as<double>()[0];
    const int width = bits(dtype);
    const double low = is_signed(dtype) ? -std::ldexp(1.0, width - 1) : 0.0;
    const double high = std::ldexp(1.0, is_signed(dtype) ? width - 1 : width) - 1;
    for (int64_t i = 0; i < values.size(); ++i) {
        double value = values.as<double>()[static_cast<size_t>(i)] / factor;
        if (is_integer(dtype)) value = std::fmin(std::fmax(std::nearbyint(value) + zero, low), high);
        store_double(dtype, result.raw_mutable(), i, value);
    }
}

}  // namespace kilter
