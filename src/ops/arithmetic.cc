// Add, Sub, Mul, Div and Mod with NumPy broadcasting. Integers wrap; on shapes they also compute with
// symbolic dimensions.
#include <cmath>

#include "base/fail.h"
#include "ops/elementwise.h"
#include "ops/shape_data.h"

namespace kilter::arithmetic_op {

// Unsigned arithmetic wraps where signed overflow would be undefined.
int64_t wrap_add(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrap_sub(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t wrap_mul(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Division by zero gives zero, as in NumPy: such elements are often masked away later, and the process
// must live.
int64_t divide(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? wrap_sub(0, a) : a / b; }
uint64_t divide_naturals(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }
int64_t remainder(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
uint64_t remainder_naturals(uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }

// The remainder with the sign of the divisor.
int64_t modulo(int64_t a, int64_t b) {
    const int64_t rest = remainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double real_modulo(double a, double b) {
    const double rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

BinaryFunction function_of(const Node& node) {
    if (node.op() == "Add") return {[](double a, double b) { return a + b; }, wrap_add};
    if (node.op() == "Sub") return {[](double a, double b) { return a - b; }, wrap_sub};
    if (node.op() == "Mul") return {[](double a, double b) { return a * b; }, wrap_mul};
    if (node.op() == "Div") return {[](double a, double b) { return a / b; }, divide, divide_naturals};
    if (node.attributes.get_int("fmod", 0) != 0)
        return {[](double a, double b) { return std::fmod(a, b); }, remainder, remainder_naturals};
    return {real_modulo, modulo, remainder_naturals};
}

// Numbers are computed; a symbol survives where the other operand is neutral.
Dim fold_entry(const Node& node, const Dim& a, const Dim& b) {
    const std::optional<int64_t> left = entry_number(a);
    const std::optional<int64_t> right = entry_number(b);
    const std::string& op = node.op();
    if (left && right) return data_entry(function_of(node).integer(*left, *right));
    if (op == "Add") return right == 0 ? a : left == 0 ? b : Dim();
    if (op == "Sub") return right == 0 ? a : a == b ? Dim(0) : Dim();
    if (op == "Mul") return right == 1 ? a : left == 1 ? b : left == 0 || right == 0 ? Dim(0) : Dim();
    if (op == "Div") return right == 1 ? a : a == b ? Dim(1) : Dim();
    return {};
}

void check_dtype(const Node& node, DType dtype) {
    require(dtype == DType::undefined || is_float(dtype) || is_integer(dtype),
            "{} is not defined for elements of {}", node.op(), name(dtype));
}

void infer(InferContext& context) {
    ValueType type;
    type.dtype = common_dtype(context);
    check_dtype(context.node(), type.dtype);
    type.shape = broadcast_inputs(context);
    context.set_output(0, std::move(type));
    fold_shape_data(context, [&](const Dim& a, const Dim& b) { return fold_entry(context.node(), a, b); });
}

void kernel(KernelContext& context) {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    check_dtype(context.node(), a.dtype());
    map_binary(function_of(context.node()), a, b,
               context.output(0, a.dtype(), broadcast(a.shape(), b.shape())));
}

KILTER_OP({.name = "Add", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "Sub", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "Mul", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "Div", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "Mod",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"fmod", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::arithmetic_op
