// Operators on elements: activations, arithmetic with broadcasting, comparisons, selection.
#include <array>

#include "formats/tensorflow/lower/lowering.h"

namespace kilter::tensorflow {
namespace {

// Operators that only have another name: {TensorFlow's, ONNX's} with the same inputs.
constexpr std::array<std::pair<std::string_view, std::string_view>, 55> kRenamed{{
    {"Abs", "Abs"},
    {"Acos", "Acos"},
    {"Acosh", "Acosh"},
    {"Add", "Add"},
    {"AddV2", "Add"},
    {"AddN", "Sum"},
    {"Asin", "Asin"},
    {"Asinh", "Asinh"},
    {"Atan", "Atan"},
    {"Atanh", "Atanh"},
    {"BitwiseAnd", "BitwiseAnd"},
    {"BitwiseOr", "BitwiseOr"},
    {"BitwiseXor", "BitwiseXor"},
    {"Ceil", "Ceil"},
    {"Cos", "Cos"},
    {"Cosh", "Cosh"},
    {"Div", "Div"},  // of integers: towards zero, as in ONNX
    {"Elu", "Elu"},
    {"Equal", "Equal"},
    {"Erf", "Erf"},
    {"Exp", "Exp"},
    {"Floor", "Floor"},
    {"Greater", "Greater"},
    {"GreaterEqual", "GreaterOrEqual"},
    {"Inv", "Reciprocal"},
    {"Invert", "BitwiseNot"},
    {"IsInf", "IsInf"},
    {"IsNan", "IsNaN"},
    {"Less", "Less"},
    {"LessEqual", "LessOrEqual"},
    {"Log", "Log"},
    {"LogicalAnd", "And"},
    {"LogicalNot", "Not"},
    {"LogicalOr", "Or"},
    {"Maximum", "Max"},
    {"Minimum", "Min"},
    {"Mul", "Mul"},
    {"Neg", "Neg"},
    {"Pow", "Pow"},
    {"RealDiv", "Div"},
    {"Reciprocal", "Reciprocal"},
    {"Relu", "Relu"},
    {"Rint", "Round"},
    {"Round", "Round"},
    {"SelectV2", "Where"},
    {"Sigmoid", "Sigmoid"},
    {"Sign", "Sign"},
    {"Sin", "Sin"},
    {"Sinh", "Sinh"},
    {"Softplus", "Softplus"},
    {"Softsign", "Softsign"},
    {"Sqrt", "Sqrt"},
    {"Sub", "Sub"},
    {"Tan", "Tan"},
    {"Tanh", "Tanh"},
}};

void lower_renamed(Lowering& l) {
    for (const auto& [from, to] : kRenamed)
        if (from == l.node().op) return l.result(l.emit(to, {l.inputs().begin(), l.inputs().end()}));
}

void lower_relu6(Lowering& l) {
    const DType dtype = l.dtype();
    l.result(l.emit("Clip", {l.input(0), l.add_scalar(0, dtype), l.add_scalar(6, dtype)}));
}

void lower_leaky_relu(Lowering& l) {
    l.result(l.emit("LeakyRelu", {l.input(0)},
                    attributes_of({{"alpha", l.attributes().get_float("alpha", 0.2F)}})));
}

// ONNX's default constants are TensorFlow's, but rounded.
void lower_selu(Lowering& l) {
    l.result(l.emit("Selu", {l.input(0)},
                    attributes_of({{"alpha", 1.6732632423543772F}, {"gamma", 1.0507009873554805F}})));
}

void lower_rsqrt(Lowering& l) { l.result(l.emit("Reciprocal", {l.emit("Sqrt", {l.input(0)})})); }
void lower_square(Lowering& l) { l.result(l.emit("Mul", {l.input(0), l.input(0)})); }

// 2 atanh(x / (x + 2)): 1 + x would lose the digits of a small x. A large one loses none, and the quotient would be 1.
void lower_log1p(Lowering& l) {
    Value* x = l.input(0);
    Value* one = l.add_scalar(1, l.dtype());
    Value* two = l.add_scalar(2, l.dtype());
    Value* small = l.emit("Mul", {l.emit("Atanh", {l.emit("Div", {x, l.emit("Add", {x, two})})}), two});
    Value* large = l.emit("Log", {l.emit("Add", {x, one})});
    l.result(l.emit("Where", {l.emit("Less", {x, one}), small, large}));
}

// tanh(x/2) (exp(x) + 1): exp(x) - 1 would lose the digits of a small x.
void lower_expm1(Lowering& l) {
    Value* x = l.input(0);
    Value* half = l.emit("Tanh", {l.emit("Mul", {x, l.add_scalar(0.5, l.dtype())})});
    l.result(l.emit("Mul", {half, l.emit("Add", {l.emit("Exp", {x}), l.add_scalar(1, l.dtype())})}));
}

void lower_erfc(Lowering& l) { l.result(l.emit("Erfc", {l.input(0)}, {}, kKilterDomain)); }

void lower_is_finite(Lowering& l) {
    Value* bad = l.emit("Or", {l.emit("IsInf", {l.input(0)}), l.emit("IsNaN", {l.input(0)})});
    l.result(l.emit("Not", {bad}));
}

void lower_not_equal(Lowering& l) { l.result(l.emit("Not", {l.emit("Equal", {l.input(0), l.input(1)})})); }
void lower_xor(Lowering& l) { l.result(l.emit("Xor", {l.input(0), l.input(1)})); }

void lower_squared_difference(Lowering& l) {
    Value* difference = l.emit("Sub", {l.input(0), l.input(1)});
    l.result(l.emit("Mul", {difference, difference}));
}

// The remainder with the sign of the divisor.
Value* floor_mod(Lowering& l, Value* a, Value* b) {
    if (!is_float(l.dtype())) return l.emit("Mod", {a, b});
    Value* zero = l.add_scalar(0, l.dtype());
    Value* rest = l.emit("Mod", {a, b}, attributes_of({{"fmod", int64_t{1}}}));
    Value* differ = l.emit("Xor", {l.emit("Less", {rest, zero}), l.emit("Less", {b, zero})});
    Value* inexact = l.emit("Not", {l.emit("Equal", {rest, zero})});
    return l.emit("Where", {l.emit("And", {differ, inexact}), l.emit("Add", {rest, b}), rest});
}

void lower_floor_mod(Lowering& l) { l.result(floor_mod(l, l.input(0), l.input(1))); }

void lower_floor_div(Lowering& l) {
    Value* a = l.input(0);
    Value* b = l.input(1);
    if (is_float(l.dtype())) return l.result(l.emit("Floor", {l.emit("Div", {a, b})}));
    l.result(l.emit("Div", {l.emit("Sub", {a, floor_mod(l, a, b)}), b}));
}

void lower_truncate_div(Lowering& l) {
    if (is_float(l.dtype())) not_lowered("TruncateDiv of floats");
    l.result(l.emit("Div", {l.input(0), l.input(1)}));
}

void lower_truncate_mod(Lowering& l) {
    l.result(l.emit("Mod", {l.input(0), l.input(1)}, attributes_of({{"fmod", int64_t{1}}})));
}

// 0 where the second operand is 0, even if the first is infinite.
void lower_div_no_nan(Lowering& l) {
    Value* zero = l.add_scalar(0, l.dtype());
    Value* safe = l.emit("Div", {l.input(0), l.input(1)});
    l.result(l.emit("Where", {l.emit("Equal", {l.input(1), zero}), zero, safe}));
}

void lower_mul_no_nan(Lowering& l) {
    Value* zero = l.add_scalar(0, l.dtype());
    Value* product = l.emit("Mul", {l.input(0), l.input(1)});
    l.result(l.emit("Where", {l.emit("Equal", {l.input(1), zero}), zero, product}));
}

// The old form: a vector of conditions chooses rows.
void lower_select(Lowering& l) {
    Value* condition = l.input(0);
    const int own = l.rank(condition);
    const int rank = own == 0 ? 0 : l.rank(l.input(1));
    if (own == 1 && rank > 1) {
        Ints shape(static_cast<size_t>(rank), 1);
        shape[0] = -1;
        condition = l.reshape(condition, shape);
    }
    l.result(l.emit("Where", {condition, l.input(1), l.input(2)}));
}

void lower_clip_by_value(Lowering& l) {
    l.result(l.emit("Min", {l.emit("Max", {l.input(0), l.input(1)}), l.input(2)}));
}

void lower_cast(Lowering& l) {
    const DType from = l.dtype("SrcT");
    const DType to = l.dtype("DstT");
    if (from == DType::string || to == DType::string || from == DType::complex64 || from == DType::complex128)
        not_lowered("a cast from {} to {}", name(from), name(to));
    l.result(l.cast(l.input(0), to));
}

void lower_atan2(Lowering& l) {
    constexpr double kPi = 3.14159265358979323846;
    Value* y = l.input(0);
    Value* x = l.input(1);
    const DType dtype = l.dtype();
    Value* zero = l.add_scalar(0, dtype);
    Value* angle = l.emit("Atan", {l.emit("Div", {y, x})});
    Value* turn =
        l.emit("Where", {l.emit("Less", {y, zero}), l.add_scalar(-kPi, dtype), l.add_scalar(kPi, dtype)});
    Value* turned = l.emit("Where", {l.emit("Less", {x, zero}), l.emit("Add", {angle, turn}), angle});
    Value* origin = l.emit("And", {l.emit("Equal", {x, zero}), l.emit("Equal", {y, zero})});
    l.result(l.emit("Where", {origin, zero, turned}));
}

std::vector<LowerRule> make_rules() {
    std::vector<LowerRule> rules{
        {"Relu6", lower_relu6},
        {"LeakyRelu", lower_leaky_relu},
        {"Selu", lower_selu},
        {"Rsqrt", lower_rsqrt},
        {"Square", lower_square},
        {"Log1p", lower_log1p},
        {"Expm1", lower_expm1},
        {"Erfc", lower_erfc},
        {"IsFinite", lower_is_finite},
        {"NotEqual", lower_not_equal},
        {"LogicalXor", lower_xor},
        {"SquaredDifference", lower_squared_difference},
        {"FloorMod", lower_floor_mod},
        {"FloorDiv", lower_floor_div},
        {"TruncateDiv", lower_truncate_div},
        {"TruncateMod", lower_truncate_mod},
        {"Mod", lower_truncate_mod},
        {"DivNoNan", lower_div_no_nan},
        {"MulNoNan", lower_mul_no_nan},
        {"Select", lower_select},
        {"ClipByValue", lower_clip_by_value},
        {"Cast", lower_cast},
        {"Atan2", lower_atan2},
    };
    for (const auto& [from, to] : kRenamed) rules.push_back({from, lower_renamed});
    return rules;
}

}  // namespace

std::span<const LowerRule> elementwise_rules() {
    static const std::vector<LowerRule> rules = make_rules();
    return rules;
}

}  // namespace kilter::tensorflow
