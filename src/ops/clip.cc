// Clip: limits elements to [min, max]; both are optional scalar inputs.
#include <algorithm>
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/op.h"

namespace kilter::clip_op {

void infer(InferContext& context) {
    for (const size_t bound : {size_t{1}, size_t{2}}) {
        const DType dtype = context.dtype(bound);
        require(
            dtype == DType::undefined || context.dtype(0) == DType::undefined || dtype == context.dtype(0),
            "a bound of {} does not fit elements of {}", name(dtype), name(context.dtype(0)));
    }
    context.same_as_input();
}

const Tensor* bound_of(const KernelContext& context, size_t index) {
    if (!context.has_input(index)) return nullptr;
    const Tensor& bound = context.input(index);
    require(bound.size() == 1 && bound.dtype() == context.input(0).dtype(),
            "a bound must be one number of {}, not {} of {}", name(context.input(0).dtype()), bound.size(),
            name(bound.dtype()));
    return &bound;
}

// min(max(x, low), high): with low > high everything becomes high; NaN stays.
template <class T>
void clip(const Tensor& x, const Tensor* low, const Tensor* high, Tensor& y,
          T (*load)(DType, const void*, int64_t), void (*store)(DType, void*, int64_t, T)) {
    const DType dtype = x.dtype();
    const T least = low != nullptr ? load(dtype, low->raw(), 0) : T{};
    const T most = high != nullptr ? load(dtype, high->raw(), 0) : T{};
    for (int64_t i = 0; i < x.size(); ++i) {
        T value = load(dtype, x.raw(), i);
        if (low != nullptr) value = std::max(value, least);
        if (high != nullptr) value = std::min(value, most);
        store(dtype, y.raw_mutable(), i, value);
    }
}

uint64_t load_natural(DType dtype, const void* data, int64_t index) {
    return static_cast<uint64_t>(load_int(dtype, data, index));
}

void store_natural(DType dtype, void* data, int64_t index, uint64_t value) {
    store_int(dtype, data, index, static_cast<int64_t>(value));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const Tensor* low = bound_of(context, 1);
    const Tensor* high = bound_of(context, 2);
    Tensor& y = context.output(0, x.dtype(), x.shape());
    if (x.dtype() == DType::u64)
        clip<uint64_t>(x, low, high, y, load_natural, store_natural);
    else if (is_integer(x.dtype()))
        clip<int64_t>(x, low, high, y, load_int, store_int);
    else
        clip<double>(x, low, high, y, load_double, store_double);
}

KILTER_OP({.name = "Clip", .min_inputs = 1, .max_inputs = 3, .infer = infer, .kernel = kernel});

}  // namespace kilter::clip_op
