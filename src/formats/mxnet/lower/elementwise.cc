// Operators that treat every element alike: functions of one, two or many arrays, and of an array and a number.
#include <array>
#include <cmath>

#include "formats/mxnet/lower/lowering.h"

namespace kilter::mxnet {
namespace {

void unary(Lowering& l, std::string_view op) { l.result(l.emit(op, {l.input()})); }

void binary(Lowering& l, std::string_view op) { l.result(l.emit(op, {l.input(0), l.input(1)})); }

// Comparisons give 0 and 1 in the type of what is compared.
void compare(Lowering& l, std::string_view op) {
    const DType dtype = l.input(0)->type.dtype;
    l.result(l.cast(l.emit(op, {l.input(0), l.input(1)}), dtype));
}

void not_equal(Lowering& l, Value* other) {
    Value* equal = l.emit("Equal", {l.input(0), other});
    l.result(l.cast(l.emit("Not", {equal}), l.input(0)->type.dtype));
}

void logical(Lowering& l, std::string_view op) {
    const auto truth = [&](Value* value) { return l.cast(value, DType::boolean); };
    l.result(l.cast(l.emit(op, {truth(l.input(0)), truth(l.input(1))}), l.input(0)->type.dtype));
}

Value* number(Lowering& l) { return l.scalar_like(l.parameters().real("scalar", 1), l.input()); }

void with_number(Lowering& l, std::string_view op) { l.result(l.emit(op, {l.input(), number(l)})); }

void number_with(Lowering& l, std::string_view op) { l.result(l.emit(op, {number(l), l.input()})); }

void compare_number(Lowering& l, std::string_view op) {
    l.result(l.cast(l.emit(op, {l.input(), number(l)}), l.input()->type.dtype));
}

void lower_sum_of_all(Lowering& l) { l.result(l.emit("Sum", {l.inputs().begin(), l.inputs().end()})); }

void lower_activation(Lowering& l) {
    const std::string type = l.parameters().text("act_type");
    if (type == "relu") return unary(l, "Relu");
    if (type == "sigmoid") return unary(l, "Sigmoid");
    if (type == "tanh") return unary(l, "Tanh");
    if (type == "softrelu") return unary(l, "Softplus");
    if (type == "softsign") return unary(l, "Softsign");
    if (type == "mish") return unary(l, "Mish");
    if (type == "log_sigmoid") return l.result(l.emit("Log", {l.emit("Sigmoid", {l.input()})}));
    not_lowered("act_type {}", type);
}

// One slope for every channel, which is the second axis.
Value* slopes(Lowering& l) {
    const int rank = l.rank(l.input(0));
    Ints shape(static_cast<size_t>(std::max(rank - 1, 1)), 1);
    shape[0] = -1;
    return rank > 2 ? l.reshape(l.input(1), shape) : l.input(1);
}

void lower_leaky(Lowering& l) {
    const Parameters parameters = l.parameters();
    const std::string type = parameters.text("act_type", "leaky");
    const auto slope = static_cast<float>(parameters.real("slope", 0.25));
    Value* x = l.input();
    if (type == "leaky") return l.result(l.emit("LeakyRelu", {x}, attributes_of({{"alpha", slope}})));
    if (type == "elu") return l.result(l.emit("Elu", {x}, attributes_of({{"alpha", slope}})));
    if (type == "selu") return unary(l, "Selu");
    if (type == "gelu") return unary(l, "Gelu");
    if (type == "prelu") return l.result(l.emit("PRelu", {x, slopes(l)}));
    // Random while training; in the middle of its range afterwards.
    if (type == "rrelu") {
        const double middle =
            (parameters.real("lower_bound", 0.125) + parameters.real("upper_bound", 0.334)) / 2;
        return l.result(l.emit("LeakyRelu", {x}, attributes_of({{"alpha", static_cast<float>(middle)}})));
    }
    not_lowered("act_type {}", type);
}

void lower_clip(Lowering& l) {
    const Parameters parameters = l.parameters();
    Value* x = l.input();
    l.result(l.emit("Clip", {x, l.scalar_like(parameters.real("a_min", 0), x),
                             l.scalar_like(parameters.real("a_max", 0), x)}));
}

void lower_hard_sigmoid(Lowering& l) {
    const Parameters parameters = l.parameters();
    l.result(l.emit("HardSigmoid", {l.input()},
                    attributes_of({{"alpha", static_cast<float>(parameters.real("alpha", 0.2))},
                                   {"beta", static_cast<float>(parameters.real("beta", 0.5))}})));
}

void lower_rsqrt(Lowering& l) { l.result(l.emit("Reciprocal", {l.emit("Sqrt", {l.input()})})); }

void lower_square(Lowering& l) { l.result(l.emit("Mul", {l.input(), l.input()})); }

void lower_smooth_l1(Lowering& l) {
    // 0.5 (σx)² where |x| < 1/σ², |x| - 0.5/σ² elsewhere.
    Value* x = l.input();
    const double sigma2 = std::pow(l.parameters().real("scalar", 1), 2);
    Value* size = l.emit("Abs", {x});
    Value* inner = l.emit("Mul", {l.emit("Mul", {x, x}), l.scalar_like(0.5 * sigma2, x)});
    Value* outer = l.emit("Sub", {size, l.scalar_like(0.5 / sigma2, x)});
    l.result(l.emit("Where", {l.emit("Less", {size, l.scalar_like(1 / sigma2, x)}), inner, outer}));
}

void lower_cast(Lowering& l) { l.result(l.cast(l.input(), l.parameters().dtype("dtype", DType::f32))); }

void lower_identity(Lowering& l) { l.result(l.emit("Identity", {l.input()})); }

// Numbers of the same shape.
void fill_like(Lowering& l, double value) {
    Value* x = l.input();
    l.result(l.emit("Expand", {l.scalar_like(value, x), l.shape_of(x)}));
}

// A vector of conditions chooses rows: it stands along the first axis, where broadcasting would put it along the last.
Value* row_conditions(Lowering& l, Value* condition, Value* x) {
    if (condition->type.shape && x->type.shape) {
        const int rank = l.rank(x);
        if (l.rank(condition) != 1 || rank < 2) return condition;
        Ints shape(static_cast<size_t>(rank), 1);
        shape[0] = -1;
        return l.reshape(condition, shape);
    }
    // Ranks that only a run can tell: as many ones behind as the condition has axes less.
    Value* own = l.shape_of(condition);
    Value* missing = l.emit("Sub", {l.shape_of(l.shape_of(x)), l.shape_of(own)});
    Value* ones =
        l.emit("ConstantOfShape", {missing}, attributes_of({{"value", Tensor::of<int64_t>({1}, {1})}}));
    Value* shape = l.emit("Concat", {own, ones}, attributes_of({{"axis", int64_t{0}}}));
    return l.emit("Reshape", {condition, shape});
}

void lower_where(Lowering& l) {
    Value* condition = row_conditions(l, l.cast(l.input(0), DType::boolean), l.input(1));
    l.result(l.emit("Where", {condition, l.input(1), l.input(2)}));
}

// The nearest whole number; of two that are equally near, the lower one.
void lower_rint(Lowering& l) {
    Value* x = l.input();
    Value* below = l.emit("Floor", {x});
    Value* above = l.emit("Ceil", {x});
    Value* near = l.emit("LessOrEqual", {l.emit("Sub", {x, below}), l.emit("Sub", {above, x})});
    l.result(l.emit("Where", {near, below, above}));
}

// The nearest whole number; of two that are equally near, the one further from zero.
void lower_round(Lowering& l) {
    Value* x = l.input();
    Value* size = l.emit("Abs", {x});
    Value* below = l.emit("Floor", {size});
    Value* near = l.emit("Less", {l.emit("Sub", {size, below}), l.scalar_like(0.5, x)});
    Value* rounded = l.emit("Where", {near, below, l.emit("Ceil", {size})});
    l.result(l.emit("Mul", {rounded, l.emit("Sign", {x})}));
}

constexpr auto kAdd = [](Lowering& l) { binary(l, "Add"); };
constexpr auto kSub = [](Lowering& l) { binary(l, "Sub"); };
constexpr auto kMul = [](Lowering& l) { binary(l, "Mul"); };
constexpr auto kDiv = [](Lowering& l) { binary(l, "Div"); };
constexpr auto kPow = [](Lowering& l) { binary(l, "Pow"); };
constexpr auto kMax = [](Lowering& l) { binary(l, "Max"); };
constexpr auto kMin = [](Lowering& l) { binary(l, "Min"); };
constexpr auto kEqual = [](Lowering& l) { compare(l, "Equal"); };
constexpr auto kNotEqual = [](Lowering& l) { not_equal(l, l.input(1)); };
constexpr auto kGreater = [](Lowering& l) { compare(l, "Greater"); };
constexpr auto kGreaterEqual = [](Lowering& l) { compare(l, "GreaterOrEqual"); };
constexpr auto kLess = [](Lowering& l) { compare(l, "Less"); };
constexpr auto kLessEqual = [](Lowering& l) { compare(l, "LessOrEqual"); };

constexpr LowerRule kElementwiseRules[] = {
    {"elemwise_add", kAdd},
    {"_plus", kAdd},
    {"_Plus", kAdd},
    {"broadcast_add", kAdd},
    {"broadcast_plus", kAdd},
    {"_grad_add", kAdd},
    {"elemwise_sub", kSub},
    {"_minus", kSub},
    {"_Minus", kSub},
    {"broadcast_sub", kSub},
    {"broadcast_minus", kSub},
    {"elemwise_mul", kMul},
    {"_mul", kMul},
    {"_Mul", kMul},
    {"broadcast_mul", kMul},
    {"elemwise_div", kDiv},
    {"_div", kDiv},
    {"_Div", kDiv},
    {"broadcast_div", kDiv},
    {"_power", kPow},
    {"_Power", kPow},
    {"broadcast_power", kPow},
    {"_maximum", kMax},
    {"_Maximum", kMax},
    {"broadcast_maximum", kMax},
    {"_minimum", kMin},
    {"_Minimum", kMin},
    {"broadcast_minimum", kMin},
    {"_equal", kEqual},
    {"broadcast_equal", kEqual},
    {"_not_equal", kNotEqual},
    {"broadcast_not_equal", kNotEqual},
    {"_greater", kGreater},
    {"broadcast_greater", kGreater},
    {"_greater_equal", kGreaterEqual},
    {"broadcast_greater_equal", kGreaterEqual},
    {"_lesser", kLess},
    {"broadcast_lesser", kLess},
    {"_lesser_equal", kLessEqual},
    {"broadcast_lesser_equal", kLessEqual},
    {"broadcast_logical_and", [](Lowering& l) { logical(l, "And"); }},
    {"broadcast_logical_or", [](Lowering& l) { logical(l, "Or"); }},
    {"_plus_scalar", [](Lowering& l) { with_number(l, "Add"); }},
    {"_PlusScalar", [](Lowering& l) { with_number(l, "Add"); }},
    {"_minus_scalar", [](Lowering& l) { with_number(l, "Sub"); }},
    {"_MinusScalar", [](Lowering& l) { with_number(l, "Sub"); }},
    {"_rminus_scalar", [](Lowering& l) { number_with(l, "Sub"); }},
    {"_RMinusScalar", [](Lowering& l) { number_with(l, "Sub"); }},
    {"_mul_scalar", [](Lowering& l) { with_number(l, "Mul"); }},
    {"_MulScalar", [](Lowering& l) { with_number(l, "Mul"); }},
    {"_div_scalar", [](Lowering& l) { with_number(l, "Div"); }},
    {"_DivScalar", [](Lowering& l) { with_number(l, "Div"); }},
    {"_rdiv_scalar", [](Lowering& l) { number_with(l, "Div"); }},
    {"_RDivScalar", [](Lowering& l) { number_with(l, "Div"); }},
    {"_power_scalar", [](Lowering& l) { with_number(l, "Pow"); }},
    {"_PowerScalar", [](Lowering& l) { with_number(l, "Pow"); }},
    {"_rpower_scalar", [](Lowering& l) { number_with(l, "Pow"); }},
    {"_maximum_scalar", [](Lowering& l) { with_number(l, "Max"); }},
    {"_MaximumScalar", [](Lowering& l) { with_number(l, "Max"); }},
    {"_minimum_scalar", [](Lowering& l) { with_number(l, "Min"); }},
    {"_MinimumScalar", [](Lowering& l) { with_number(l, "Min"); }},
    {"_equal_scalar", [](Lowering& l) { compare_number(l, "Equal"); }},
    {"_not_equal_scalar", [](Lowering& l) { not_equal(l, number(l)); }},
    {"_greater_scalar", [](Lowering& l) { compare_number(l, "Greater"); }},
    {"_greater_equal_scalar", [](Lowering& l) { compare_number(l, "GreaterOrEqual"); }},
    {"_lesser_scalar", [](Lowering& l) { compare_number(l, "Less"); }},
    {"_lesser_equal_scalar", [](Lowering& l) { compare_number(l, "LessOrEqual"); }},
    {"add_n", lower_sum_of_all},
    {"ElementWiseSum", lower_sum_of_all},
    {"_sum", lower_sum_of_all},
    {"Activation", lower_activation},
    {"LeakyReLU", lower_leaky},
    {"relu", [](Lowering& l) { unary(l, "Relu"); }},
    {"_npx_relu", [](Lowering& l) { unary(l, "Relu"); }},
    {"sigmoid", [](Lowering& l) { unary(l, "Sigmoid"); }},
    {"hard_sigmoid", lower_hard_sigmoid},
    {"softsign", [](Lowering& l) { unary(l, "Softsign"); }},
    {"tanh", [](Lowering& l) { unary(l, "Tanh"); }},
    {"exp", [](Lowering& l) { unary(l, "Exp"); }},
    {"log", [](Lowering& l) { unary(l, "Log"); }},
    {"sqrt", [](Lowering& l) { unary(l, "Sqrt"); }},
    {"rsqrt", lower_rsqrt},
    {"square", lower_square},
    {"abs", [](Lowering& l) { unary(l, "Abs"); }},
    {"sign", [](Lowering& l) { unary(l, "Sign"); }},
    {"negative", [](Lowering& l) { unary(l, "Neg"); }},
    {"reciprocal", [](Lowering& l) { unary(l, "Reciprocal"); }},
    {"erf", [](Lowering& l) { unary(l, "Erf"); }},
    {"sin", [](Lowering& l) { unary(l, "Sin"); }},
    {"cos", [](Lowering& l) { unary(l, "Cos"); }},
    {"floor", [](Lowering& l) { unary(l, "Floor"); }},
    {"ceil", [](Lowering& l) { unary(l, "Ceil"); }},
    {"rint", lower_rint},
    {"round", lower_round},
    {"smooth_l1", lower_smooth_l1},
    {"clip", lower_clip},
    {"Cast", lower_cast},
    {"cast", lower_cast},
    {"amp_cast", lower_cast},
    {"where", lower_where},
    {"zeros_like", [](Lowering& l) { fill_like(l, 0); }},
    {"ones_like", [](Lowering& l) { fill_like(l, 1); }},
    {"Dropout", lower_identity},
    {"_copy", lower_identity},
    {"identity", lower_identity},
    {"BlockGrad", lower_identity},
    {"stop_gradient", lower_identity},
    {"make_loss", lower_identity},
    {"MakeLoss", lower_identity},
    {"IdentityAttachKLSparseReg", lower_identity},
};

}  // namespace

std::span<const LowerRule> elementwise_rules() { return kElementwiseRules; }

}  // namespace kilter::mxnet
