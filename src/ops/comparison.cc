// Equal, Less, Greater, LessOrEqual and GreaterOrEqual.
#include "base/convert.h"
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/shape_data.h"

namespace kilter::comparison_op {

#define COMPARISON(symbol)                                                \
    BinaryFunction {                                                      \
        [](double a, double b) -> double { return a symbol b; },          \
            [](int64_t a, int64_t b) -> int64_t { return a symbol b; },   \
            [](uint64_t a, uint64_t b) -> uint64_t { return a symbol b; } \
    }

BinaryFunction function_of(const Node& node) {
    if (node.op() == "Equal") return COMPARISON(==);
    if (node.op() == "Less") return COMPARISON(<);
    if (node.op() == "Greater") return COMPARISON(>);
    if (node.op() == "LessOrEqual") return COMPARISON(<=);
    return COMPARISON(>=);
}

#undef COMPARISON

Dim fold_entry(const Node& node, const Dim& a, const Dim& b) {
    const std::optional<int64_t> left = entry_number(a);
    const std::optional<int64_t> right = entry_number(b);
    if (left && right) return function_of(node).integer(*left, *right);
    if (node.op() != "Equal") return {};
    if (a == b) return 1;
    // A named dimension is never negative: what "expand -1 keeps the dimension" tests for.
    const bool named = !a.symbol.empty() && !b.symbol.empty();
    return named && (left.value_or(0) < 0 || right.value_or(0) < 0) ? Dim(0) : Dim();
}

void infer(InferContext& context) {
    common_dtype(context);
    ValueType type;
    type.dtype = DType::boolean;
    type.shape = broadcast_inputs(context);
    context.set_output(0, std::move(type));
    fold_shape_data(context, [&](const Dim& a, const Dim& b) { return fold_entry(context.node(), a, b); });
}

void equal_strings(const Tensor& a, const Tensor& b, Tensor& y) {
    require(b.dtype() == DType::string, "inputs have different element types: string and {}",
            name(b.dtype()));
    BroadcastIndex left(a.shape(), y.shape());
    BroadcastIndex right(b.shape(), y.shape());
    for (int64_t i = 0; i < y.size(); ++i, left.next(), right.next())
        y.as_mutable<bool>()[static_cast<size_t>(i)] = a.as_strings()[static_cast<size_t>(left.offset())] ==
                                                       b.as_strings()[static_cast<size_t>(right.offset())];
}

void kernel(KernelContext& context) {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    Tensor& y = context.output(0, DType::boolean, broadcast(a.shape(), b.shape()));
    if (a.dtype() == DType::string && context.node().op() == "Equal") return equal_strings(a, b, y);
    map_binary(function_of(context.node()), a, b, y);
}

KILTER_OP({.name = "Equal", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "Less", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "Greater", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "LessOrEqual", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "GreaterOrEqual", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});

}  // namespace kilter::comparison_op
