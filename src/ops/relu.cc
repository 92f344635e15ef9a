// Relu: max(x, 0).
#include <algorithm>

#include "base/convert.h"
#include "ops/op.h"

namespace kilter {
namespace {

void infer(InferContext& context) { context.same_as_input(); }

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0, x.dtype(), x.shape());
    for (int64_t i = 0; i < x.size(); ++i)
        store_double(y.dtype(), y.raw_mutable(), i, std::max(load_double(x.dtype(), x.raw(), i), 0.0));
}

KILTER_OP({.name = "Relu", .infer = infer, .kernel = kernel});

}  // namespace
}  // namespace kilter
