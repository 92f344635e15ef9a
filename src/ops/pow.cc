// Pow: base ^ exponent; the two may have different element types, the result has the base's.
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"

namespace kilter::pow_op {

// Exact as long as it fits; wraps after that.
int64_t integer_power(int64_t base, int64_t exponent) {
    uint64_t result = 1;
    for (auto factor = static_cast<uint64_t>(base); exponent > 0; exponent >>= 1, factor *= factor)
        if ((exponent & 1) != 0) result *= factor;
    return static_cast<int64_t>(result);
}

void infer(InferContext& context) {
    ValueType type;
    type.dtype = context.dtype(0);
    type.shape = broadcast_inputs(context);
    context.set_output(0, std::move(type));
}

void kernel(KernelContext& context) {
    const Tensor& base = context.input(0);
    const Tensor& exponent = context.input(1);
    for (const DType dtype : {base.dtype(), exponent.dtype()})
        require(is_float(dtype) || is_integer(dtype), "Pow is not defined for elements of {}", name(dtype));
    Tensor& y = context.output(0, base.dtype(), broadcast(base.shape(), exponent.shape()));
    const bool integers = is_integer(base.dtype()) && is_integer(exponent.dtype());
    BroadcastIndex left(base.shape(), y.shape());
    BroadcastIndex right(exponent.shape(), y.shape());
    for (int64_t i = 0; i < y.size(); ++i, left.next(), right.next()) {
        const int64_t power = integers ? load_int(exponent.dtype(), exponent.raw(), right.offset()) : -1;
        if (power >= 0) {
            store_int(y.dtype(), y.raw_mutable(), i,
                      integer_power(load_int(base.dtype(), base.raw(), left.offset()), power));
            continue;
        }
        store_double(y.dtype(), y.raw_mutable(), i,
                     std::pow(load_double(base.dtype(), base.raw(), left.offset()),
                              load_double(exponent.dtype(), exponent.raw(), right.offset())));
    }
}

KILTER_OP({.name = "Pow", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});

}  // namespace kilter::pow_op
