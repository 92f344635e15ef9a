// Element-wise Not, BitwiseNot, IsNaN and IsInf.
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/op.h"

namespace kilter::predicates_op {

void infer_not(InferContext& context) {
    const DType dtype = context.dtype(0);
    require(dtype == DType::undefined || dtype == DType::boolean, "expected elements of bool, found {}",
            name(dtype));
    context.same_as_input();
}

void logical_not(KernelContext& context) {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0, DType::boolean, x.shape());
    for (int64_t i = 0; i < x.size(); ++i)
        store_int(DType::boolean, y.raw_mutable(), i, load_int(x.dtype(), x.raw(), i) == 0 ? 1 : 0);
}

void infer_bitwise_not(InferContext& context) {
    const DType dtype = context.dtype(0);
    require(dtype == DType::undefined || is_integer(dtype), "expected integers, found elements of {}",
            name(dtype));
    context.same_as_input();
}

void bitwise_not(KernelContext& context) {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0, x.dtype(), x.shape());
    for (int64_t i = 0; i < x.size(); ++i)
        store_int(y.dtype(), y.raw_mutable(), i, ~load_int(x.dtype(), x.raw(), i));
}

void infer_predicate(InferContext& context) {
    ValueType type = context.input(0);
    type.dtype = DType::boolean;
    context.set_output(0, std::move(type));
}

void is_nan(KernelContext& context) {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0, DType::boolean, x.shape());
    for (int64_t i = 0; i < x.size(); ++i)
        store_int(DType::boolean, y.raw_mutable(), i, std::isnan(load_double(x.dtype(), x.raw(), i)) ? 1 : 0);
}

void is_inf(KernelContext& context) {
    const Tensor& x = context.input(0);
    const bool negative = context.attributes().get_int("detect_negative", 1) != 0;
    const bool positive = context.attributes().get_int("detect_positive", 1) != 0;
    Tensor& y = context.output(0, DType::boolean, x.shape());
    for (int64_t i = 0; i < x.size(); ++i) {
        const double value = load_double(x.dtype(), x.raw(), i);
        const bool found = std::isinf(value) && (value > 0 ? positive : negative);
        store_int(DType::boolean, y.raw_mutable(), i, found ? 1 : 0);
    }
}

KILTER_OP({.name = "Not", .infer = infer_not, .kernel = logical_not});
KILTER_OP({.name = "BitwiseNot", .infer = infer_bitwise_not, .kernel = bitwise_not});
KILTER_OP({.name = "IsNaN", .infer = infer_predicate, .kernel = is_nan});
KILTER_OP({.name = "IsInf",
           .attributes = {{"detect_negative", AttributeKind::integer},
                          {"detect_positive", AttributeKind::integer}},
           .infer = infer_predicate,
           .kernel = is_inf});

}  // namespace kilter::predicates_op
