// Element-wise functions of one tensor: Abs … Tanh, and the activations. Each is one line of the table; Gelu and kilter's own
// Erfc stand behind it.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/op.h"

namespace kilter::unary_op {

using RealFunction = double (*)(double x, double alpha, double beta);
using IntegerFunction = int64_t (*)(int64_t x);

struct UnaryOp {
    std::string_view name;
    RealFunction real;
    IntegerFunction integer = nullptr;  // null: real numbers only, unless any_type
    bool any_type = false;              // integers go through the real function
    std::string_view alpha = {};        // names and defaults of the attributes
    float alpha_default = 0;
    std::string_view beta = {};
    float beta_default = 0;
};

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double clamp(double x, double low, double high) { return std::min(std::max(x, low), high); }
int64_t negate(int64_t x) { return static_cast<int64_t>(-static_cast<uint64_t>(x)); }

#define REAL(expression) \
    [](double x, [[maybe_unused]] double a, [[maybe_unused]] double b) -> double { return expression; }
#define INTEGER(expression) [](int64_t x) -> int64_t { return expression; }

const std::array kUnaryOps{
    UnaryOp{"Abs", REAL(std::fabs(x)), INTEGER(x < 0 ? negate(x) : x)},
    UnaryOp{"Neg", REAL(-x), INTEGER(negate(x))},
    UnaryOp{"Sign",
            REAL(x > 0   ? 1
                 : x < 0 ? -1
                         : x),
            INTEGER((x > 0) - (x < 0))},
    UnaryOp{"Relu", REAL(std::max(x, 0.0)), INTEGER(std::max<int64_t>(x, 0))},
    UnaryOp{"Exp", REAL(std::exp(x))},
    UnaryOp{"Log", REAL(std::log(x))},
    UnaryOp{"Sqrt", REAL(std::sqrt(x))},
    UnaryOp{"Reciprocal", REAL(1 / x)},
    UnaryOp{"Floor", REAL(std::floor(x))},
    UnaryOp{"Ceil", REAL(std::ceil(x))},
    UnaryOp{"Round", REAL(std::nearbyint(x))},  // half to even: the default rounding mode
    UnaryOp{"Sin", REAL(std::sin(x))},
    UnaryOp{"Cos", REAL(std::cos(x))},
    UnaryOp{"Tan", REAL(std::tan(x))},
    UnaryOp{"Asin", REAL(std::asin(x))},
    UnaryOp{"Acos", REAL(std::acos(x))},
    UnaryOp{"Atan", REAL(std::atan(x))},
    UnaryOp{"Sinh", REAL(std::sinh(x))},
    UnaryOp{"Cosh", REAL(std::cosh(x))},
    UnaryOp{"Tanh", REAL(std::tanh(x))},
    UnaryOp{"Asinh", REAL(std::asinh(x))},
    UnaryOp{"Acosh", REAL(std::acosh(x))},
    UnaryOp{"Atanh", REAL(std::atanh(x))},
    UnaryOp{"Erf", REAL(std::erf(x)), nullptr, true},
    UnaryOp{"Sigmoid", REAL(sigmoid(x))},
    UnaryOp{"Softplus", REAL(softplus(x))},
    UnaryOp{"Softsign", REAL(x / (1 + std::fabs(x)))},
    UnaryOp{"HardSwish", REAL(x* clamp(x / 6 + 0.5, 0, 1))},
    UnaryOp{"Mish", REAL(x* std::tanh(softplus(x)))},
    UnaryOp{"Elu", REAL(x < 0 ? a * std::expm1(x) : x), nullptr, false, "alpha", 1},
    UnaryOp{"Celu", REAL(x > 0 ? x : a * std::expm1(x / a)), nullptr, false, "alpha", 1},
    UnaryOp{"Selu", REAL(b*(x > 0 ? x : a * std::expm1(x))), nullptr, false, "alpha",
            1.67326319217681884765625F, "gamma", 1.05070102214813232421875F},
    UnaryOp{"LeakyRelu", REAL(x < 0 ? a * x : x), nullptr, false, "alpha", 0.01F},
    UnaryOp{"ThresholdedRelu", REAL(x > a ? x : 0), nullptr, false, "alpha", 1},
    UnaryOp{"HardSigmoid", REAL(clamp(a* x + b, 0, 1)), nullptr, false, "alpha", 0.2F, "beta", 0.5F},
    UnaryOp{"Swish", REAL(x* sigmoid(a* x)), nullptr, false, "alpha", 1},
    UnaryOp{"Shrink", REAL(x<-a ? x + b : x> a ? x - b : 0), nullptr, true, "lambd", 0.5F, "bias", 0},
};

#undef REAL
#undef INTEGER

double gelu_erf(double x, double /*a*/, double /*b*/) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }

double gelu_tanh(double x, double /*a*/, double /*b*/) {
    return 0.5 * x * (1 + std::tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
}

void map_reals(KernelContext& context, RealFunction function, double alpha = 0, double beta = 0) {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0, x.dtype(), x.shape());
    if (x.dtype() == DType::f32) {
        const std::span<const float> from = x.as<float>();
        const std::span<float> to = y.as_mutable<float>();
        for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(function(from[i], alpha, beta));
        return;
    }
    for (int64_t i = 0; i < x.size(); ++i)
        store_double(y.dtype(), y.raw_mutable(), i,
                     function(load_double(x.dtype(), x.raw(), i), alpha, beta));
}

void check_dtype(const UnaryOp& op, DType dtype) {
    const bool fits = is_float(dtype) || (is_integer(dtype) && (op.integer != nullptr || op.any_type));
    require(dtype == DType::undefined || fits, "{} is not defined for elements of {}", op.name, name(dtype));
}

const UnaryOp& unary_op(const Node& node) {
    return *std::ranges::find_if(kUnaryOps, [&](const UnaryOp& op) { return op.name == node.op(); });
}

void infer(InferContext& context) {
    check_dtype(unary_op(context.node()), context.dtype(0));
    context.same_as_input();
}

void kernel(KernelContext& context) {
    const UnaryOp& op = unary_op(context.node());
    const Tensor& x = context.input(0);
    check_dtype(op, x.dtype());
    if (is_integer(x.dtype()) && op.integer != nullptr) {
        // Unsigned numbers beyond int64 look negative here, but Abs, Sign and Relu leave unsigned numbers
        // alone.
        const bool wraps = x.dtype() == DType::u64;
        Tensor& y = context.output(0, x.dtype(), x.shape());
        for (int64_t i = 0; i < x.size(); ++i) {
            const int64_t value = load_int(x.dtype(), x.raw(), i);
            const bool huge = wraps && value < 0 && op.name != "Neg";
            store_int(y.dtype(), y.raw_mutable(), i,
                      !huge               ? op.integer(value)
                      : op.name == "Sign" ? 1
                                          : value);
        }
        return;
    }
    const double alpha = op.alpha.empty() ? 0 : context.attributes().get_float(op.alpha, op.alpha_default);
    const double beta = op.beta.empty() ? 0 : context.attributes().get_float(op.beta, op.beta_default);
    map_reals(context, op.real, alpha, beta);
}

const bool kRegistered = [] {
    for (const UnaryOp& op : kUnaryOps) {
        std::vector<AttributeSpec> attributes;
        if (!op.alpha.empty()) attributes.push_back({op.alpha, AttributeKind::real});
        if (!op.beta.empty()) attributes.push_back({op.beta, AttributeKind::real});
        RegisterOp({.name = op.name, .attributes = std::move(attributes), .infer = infer, .kernel = kernel});
    }
    return true;
}();

void infer_float(InferContext& context) {
    const DType dtype = context.dtype(0);
    require(dtype == DType::undefined || is_float(dtype), "{} is not defined for elements of {}",
            context.node().op(), name(dtype));
    context.same_as_input();
}

void gelu(KernelContext& context) {
    const std::string approximate = context.attributes().get_string("approximate", "none");
    require(approximate == "none" || approximate == "tanh", "approximate must be 'none' or 'tanh', not '{}'",
            approximate);
    map_reals(context, approximate == "tanh" ? gelu_tanh : gelu_erf);
}

KILTER_OP({.name = "Gelu",
           .attributes = {{"approximate", AttributeKind::text}},
           .infer = infer_float,
           .kernel = gelu});

// 1 - Erf(x) has no digits left from 4 on; ONNX has nothing better.
void erfc(KernelContext& context) {
    map_reals(context, [](double x, double /*a*/, double /*b*/) { return std::erfc(x); });
}

KILTER_OP({.name = "Erfc", .domain = kKilterDomain, .infer = infer_float, .kernel = erfc});

}  // namespace kilter::unary_op
