// CumSum and CumProd: running totals along one axis, optionally from the back or leaving out the element
// itself.
#include "base/convert.h"
#include "base/fail.h"
#include "ops/op.h"

namespace kilter::cumulative_op {

void infer(InferContext& context) { context.same_as_input(); }

template <class T>
void accumulate(const KernelContext& context, const Tensor& x, size_t axis, Tensor& y,
                T (*load)(DType, const void*, int64_t), void (*store)(DType, void*, int64_t, T)) {
    const bool product = context.node().op() == "CumProd";
    const bool reverse = context.attributes().get_int("reverse", 0) != 0;
    const bool exclusive = context.attributes().get_int("exclusive", 0) != 0;
    const std::span<const int64_t> shape(x.shape());
    const int64_t inner = element_count(shape.subspan(axis + 1));
    const int64_t extent = shape[axis];
    for (int64_t run = 0; run < x.size() / extent; ++run) {
        const int64_t base = run / inner * extent * inner + run % inner;
        T total = product ? 1 : 0;
        for (int64_t k = 0; k < extent; ++k) {
            const int64_t at = base + (reverse ? extent - 1 - k : k) * inner;
            const T value = load(x.dtype(), x.raw(), at);
            const T before = total;
            total = product ? total * value : total + value;
            store(y.dtype(), y.raw_mutable(), at, exclusive ? before : total);
        }
    }
}

uint64_t load_bits(DType dtype, const void* data, int64_t index) {
    return static_cast<uint64_t>(load_int(dtype, data, index));
}

void store_bits(DType dtype, void* data, int64_t index, uint64_t value) {
    store_int(dtype, data, index, static_cast<int64_t>(value));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const std::vector<int64_t> axes = context.input(1).to_ints();
    require(axes.size() == 1, "the axis must be one number, not {}", axes.size());
    require(x.rank() > 0, "a scalar has no axis to sum along");
    const auto axis = static_cast<size_t>(normalize_axis(axes[0], x.rank()));
    Tensor& y = context.output(0, x.dtype(), x.shape());
    if (x.size() == 0) return;
    // Unsigned arithmetic wraps, and gives the right bits for signed integers too.
    if (is_integer(x.dtype()))
        accumulate<uint64_t>(context, x, axis, y, load_bits, store_bits);
    else
        accumulate<double>(context, x, axis, y, load_double, store_double);
}

const std::vector<AttributeSpec> kAttributes{{"exclusive", AttributeKind::integer},
                                             {"reverse", AttributeKind::integer}};

KILTER_OP({.name = "CumSum",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = kAttributes,
           .infer = infer,
           .kernel = kernel});
KILTER_OP({.name = "CumProd",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = kAttributes,
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::cumulative_op
