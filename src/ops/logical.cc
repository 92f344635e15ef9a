// And, Or and Xor on booleans, their bitwise twins on integers, and BitShift.
#include "base/fail.h"
#include "ops/elementwise.h"

namespace kilter::logical_op {

bool is_logical(const Node& node) { return node.is("And") || node.is("Or") || node.is("Xor"); }

void check_dtype(const Node& node, DType dtype) {
    const bool fits = is_logical(node) ? dtype == DType::boolean : is_integer(dtype);
    require(dtype == DType::undefined || fits, "{} is not defined for elements of {}", node.op(),
            name(dtype));
}

BinaryFunction function_of(const Node& node) {
    if (node.op().ends_with("And")) return {nullptr, [](int64_t a, int64_t b) { return a & b; }};
    if (node.op().ends_with("Xor")) return {nullptr, [](int64_t a, int64_t b) { return a ^ b; }};
    if (node.op().ends_with("Or")) return {nullptr, [](int64_t a, int64_t b) { return a | b; }};
    const std::string direction = node.attributes.get_string("direction");
    require(direction == "LEFT" || direction == "RIGHT", "direction must be 'LEFT' or 'RIGHT', not '{}'",
            direction);
    // Shifting by the width of the type or more shifts everything out.
    if (direction == "LEFT")
        return {nullptr, [](int64_t a, int64_t b) {
                    return b < 0 || b > 63 ? int64_t{0} : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
                }};
    return {
        nullptr,
        [](int64_t a, int64_t b) { return b < 0 || b > 63 ? (a < 0 ? int64_t{-1} : int64_t{0}) : a >> b; },
        [](uint64_t a, uint64_t b) { return b > 63 ? uint64_t{0} : a >> b; }};
}

void infer(InferContext& context) {
    ValueType type;
    type.dtype = common_dtype(context);
    check_dtype(context.node(), type.dtype);
    type.shape = broadcast_inputs(context);
    context.set_output(0, std::move(type));
}

void kernel(KernelContext& context) {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    check_dtype(context.node(), a.dtype());
    map_binary(function_of(context.node()), a, b,
               context.output(0, a.dtype(), broadcast(a.shape(), b.shape())));
}

KILTER_OP({.name = "And", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "Or", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "Xor", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "BitwiseAnd", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "BitwiseOr", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "BitwiseXor", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "BitShift",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"direction", AttributeKind::text, true}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::logical_op
