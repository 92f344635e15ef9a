#include "ops/numeric.h"

#include <cstring>

#include "base/convert.h"
#include "base/fail.h"

namespace kilter {

const Tensor& needed(const KernelContext& context, size_t index, std::string_view what) {
    require(context.has_input(index), "{} (input {}) is missing", what, index);
    const Tensor& tensor = context.input(index);
    require(!tensor.empty(), "{} (input {}) has no value", what, index);
    return tensor;
}

std::optional<Dims> optional_dims(const KernelContext& context, size_t index) {
    if (!context.has_input(index)) return std::nullopt;
    return to_dims(context.input(index).shape());
}

std::optional<Dims> optional_dims(const InferContext& context, size_t index) { return context.shape(index); }

std::vector<Tensor> all_inputs(const KernelContext& context) {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < context.input_count(); ++i)
        inputs.push_back(context.has_input(i) ? context.input(i) : Tensor());
    return inputs;
}

Tensor to_reals(const Tensor& tensor) {
    if (tensor.dtype() == DType::f64) return tensor;
    Tensor reals(DType::f64, tensor.shape());
    const std::span<double> values = reals.as_mutable<double>();
    if (tensor.dtype() == DType::f32) {
        const std::span<const float> floats = tensor.as<float>();
        std::copy(floats.begin(), floats.end(), values.begin());
    } else {
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = load_double(tensor.dtype(), tensor.raw(), static_cast<int64_t>(i));
    }
    return reals;
}

Tensor real_zeros(const Shape& shape) {
    Tensor reals(DType::f64, shape);
    std::ranges::fill(reals.as_mutable<double>(), 0.0);
    return reals;
}

Tensor& store_reals(KernelContext& context, size_t index, DType dtype, const Tensor& reals) {
    Tensor& result = context.output(index, dtype, reals.shape());
    const std::span<const double> values = reals.as<double>();
    if (dtype == DType::f32) {
        const std::span<float> floats = result.as_mutable<float>();
        for (size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
    } else {
        for (size_t i = 0; i < values.size(); ++i)
            store_double(dtype, result.raw_mutable(), static_cast<int64_t>(i), values[i]);
    }
    return result;
}

Dim sum(const Dim& a, const Dim& b) {
    if (!a.known() || !b.known()) return {};
    int64_t value = 0;
    require(!__builtin_add_overflow(a.value, b.value, &value), "{} + {} is too large for a dimension",
            a.value, b.value);
    return value;
}

Dim product(const Dim& a, const Dim& b) {
    if (!a.known() || !b.known()) return {};
    int64_t value = 0;
    require(!__builtin_mul_overflow(a.value, b.value, &value), "{} * {} is too large for a dimension",
            a.value, b.value);
    return value;
}

void require_same_dtype(DType expected, DType found, std::string_view what) {
    require(expected == found || expected == DType::undefined || found == DType::undefined,
            "{} must be {} like the input, found {}", what, name(expected), name(found));
}

void require_vector(const std::optional<Dims>& dims, const Dim& count, std::string_view what) {
    if (!dims) return;
    require(dims->size() == 1 && agree((*dims)[0], count), "{} must have shape [{}], found {}", what,
            to_string(count), to_string(*dims));
}

void require_real(DType dtype, std::string_view what) {
    const bool real =
        dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
    require(real || dtype == DType::undefined, "{} must be a floating-point tensor, found {}", what,
            name(dtype));
}

}  // namespace kilter
