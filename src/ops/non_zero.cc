// NonZero: positions of all elements that are not zero, one column each.
#include "base/convert.h"
#include "ops/op.h"

namespace kilter::non_zero_op {

void infer(InferContext& context) {
    const int rank = context.rank(0);
    context.set_output(0, DType::i64, {rank < 0 ? Dim() : Dim(rank), Dim()});
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    std::vector<int64_t> found;
    for (int64_t i = 0; i < x.size(); ++i)
        if (load_double(x.dtype(), x.raw(), i) != 0) found.push_back(i);
    const auto count = static_cast<int64_t>(found.size());
    Tensor& y = context.output(0, DType::i64, {x.rank(), count});
    const std::span<int64_t> positions = y.as_mutable<int64_t>();
    for (int64_t i = 0; i < count; ++i) {
        int64_t rest = found[static_cast<size_t>(i)];
        for (int axis = x.rank(); axis-- > 0; rest /= x.dim(axis))
            positions[static_cast<size_t>(axis * count + i)] = rest % x.dim(axis);
    }
}

KILTER_OP({.name = "NonZero", .infer = infer, .kernel = kernel});

}  // namespace kilter::non_zero_op
