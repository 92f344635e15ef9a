// Min, Max, Sum and Mean of any number of broadcast tensors.
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/elementwise.h"
#include "ops/shape_data.h"

namespace kilter::variadic_op {

// NaN wins over every number, as in NumPy.
double real_min(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double real_max(double a, double b) { return std::isnan(a) || a > b ? a : b; }

BinaryFunction function_of(const Node& node) {
    if (node.op() == "Min")
        return {real_min, [](int64_t a, int64_t b) { return std::min(a, b); },
                [](uint64_t a, uint64_t b) { return std::min(a, b); }};
    if (node.op() == "Max")
        return {real_max, [](int64_t a, int64_t b) { return std::max(a, b); },
                [](uint64_t a, uint64_t b) { return std::max(a, b); }};
    return {[](double a, double b) { return a + b; }};
}

void infer(InferContext& context) {
    ValueType type;
    type.dtype = common_dtype(context);
    type.shape = broadcast_inputs(context);
    context.set_output(0, std::move(type));
    if (context.input_count() != 2 || is_float(context.dtype(0))) return;
    const BinaryFunction function = function_of(context.node());
    if (function.integer == nullptr) return;
    fold_shape_data(context, [&](const Dim& a, const Dim& b) {
        const std::optional<int64_t> left = entry_number(a);
        const std::optional<int64_t> right = entry_number(b);
        if (left && right) return data_entry(function.integer(*left, *right));
        return a == b ? a : Dim();
    });
}

void kernel(KernelContext& context) {
    const Tensor& first = context.input(0);
    const BinaryFunction function = function_of(context.node());
    Shape shape;
    for (size_t i = 0; i < context.input_count(); ++i) shape = broadcast(shape, context.input(i).shape());
    // Sums of narrow floats are kept wide until the end, so that the order of the inputs does not matter
    // more than it must.
    const bool narrow = is_float(first.dtype()) && first.dtype() != DType::f64;
    const DType wide = narrow ? DType::f64 : first.dtype();
    Tensor total = first.converted(wide);
    for (size_t i = 1; i < context.input_count(); ++i) {
        require(context.input(i).dtype() == first.dtype(), "inputs have different element types: {} and {}",
                name(first.dtype()), name(context.input(i).dtype()));
        const Tensor next = context.input(i).converted(wide);
        Tensor sum(wide, broadcast(total.shape(), next.shape()));
        map_binary(function, total, next, sum);
        total = std::move(sum);
    }
    if (context.node().op() == "Mean") {
        const Tensor count = Tensor::filled(wide, {}, static_cast<double>(context.input_count()));
        Tensor mean(wide, total.shape());
        map_binary({[](double a, double b) { return a / b; }}, total, count, mean);
        total = std::move(mean);
    }
    context.set_output(0, total.converted(first.dtype()));
}

KILTER_OP({.name = "Min", .max_inputs = kVariadic, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "Max", .max_inputs = kVariadic, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "Sum", .max_inputs = kVariadic, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "Mean", .max_inputs = kVariadic, .infer = infer, .kernel = kernel});

}  // namespace kilter::variadic_op
