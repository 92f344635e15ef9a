// EyeLike: ones on a diagonal, zero elsewhere, in the shape of a matrix.
#include "base/convert.h"
#include "base/fail.h"
#include "graph/onnx_dtype.h"
#include "ops/op.h"

namespace kilter::eye_like_op {

DType result_dtype(const Attributes& attributes, DType own) {
    return attributes.has("dtype") ? dtype_from_onnx(attributes.get_int("dtype")) : own;
}

void infer(InferContext& context) {
    require(context.rank(0) < 0 || context.rank(0) == 2, "expected a matrix, found a tensor of rank {}",
            context.rank(0));
    ValueType type = context.input(0);
    type.dtype = result_dtype(context.attributes(), type.dtype);
    context.set_output(0, std::move(type));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    require(x.rank() == 2, "expected a matrix, found a tensor of rank {}", x.rank());
    const int64_t k = context.attributes().get_int("k", 0);
    Tensor y = Tensor::filled(result_dtype(context.attributes(), x.dtype()), x.shape(), 0);
    if (k > -x.dim(0) && k < x.dim(1))
        for (int64_t row = std::max<int64_t>(0, -k); row < x.dim(0) && row + k < x.dim(1); ++row)
            store_double(y.dtype(), y.raw_mutable(), row * x.dim(1) + row + k, 1);
    context.set_output(0, std::move(y));
}

KILTER_OP({.name = "EyeLike",
           .attributes = {{"dtype", AttributeKind::integer}, {"k", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::eye_like_op
