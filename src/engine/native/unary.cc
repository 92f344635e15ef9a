// Unary element-wise operators that oneDNN lacks, or computes otherwise than it should, on arrays of f32; Not on booleans;
// Abs, Neg, Sign on integers.
#include <array>
#include <cmath>
#include <limits>

#include "engine/dnnl/dnnl.h"
#include "engine/native/elementwise.h"
#include "engine/native/loop.h"
#include "engine/native/math.h"

namespace kilter::engine {
namespace {

enum class Function {
    relu,
    clip,
    hard_sigmoid,
    exp,
    elu,
    softplus,
    mish,
    erf,
    erfc,
    log,
    reciprocal,
    round,
    floor,
    ceil,
    sign,
    softsign,
    celu,
    selu,
    thresholded_relu,
    shrink,
    sin,
    cos,
    tan,
    asin,
    acos,
    atan,
    sinh,
    cosh,
    asinh,
    acosh,
    atanh,
};

struct Entry {
    std::string_view op;
    Function function;
    std::string_view alpha = {};
    float alpha_default = 0;
    std::string_view beta = {};
    float beta_default = 0;
    std::string_view domain = {};
};

constexpr std::array kFunctions{
    Entry{"Relu", Function::relu},
    Entry{"Clip", Function::clip},
    Entry{"HardSigmoid", Function::hard_sigmoid, "alpha", 0.2F, "beta", 0.5F},
    Entry{"Exp", Function::exp},
    Entry{"Elu", Function::elu, "alpha", 1.0F},
    Entry{"Softplus", Function::softplus},
    Entry{"Mish", Function::mish},
    Entry{"Erf", Function::erf},
    Entry{"Erfc", Function::erfc, {}, 0, {}, 0, kKilterDomain},
    Entry{"Log", Function::log},
    Entry{"Reciprocal", Function::reciprocal},
    Entry{"Round", Function::round},
    Entry{"Floor", Function::floor},
    Entry{"Ceil", Function::ceil},
    Entry{"Sign", Function::sign},
    Entry{"Softsign", Function::softsign},
    Entry{"Celu", Function::celu, "alpha", 1.0F},
    Entry{"Selu", Function::selu, "alpha", 1.67326319217681884765625F, "gamma", 1.05070102214813232421875F},
    Entry{"ThresholdedRelu", Function::thresholded_relu, "alpha", 1.0F},
    Entry{"Shrink", Function::shrink, "lambd", 0.5F, "bias", 0.0F},
    Entry{"Sin", Function::sin},
    Entry{"Cos", Function::cos},
    Entry{"Tan", Function::tan},
    Entry{"Asin", Function::asin},
    Entry{"Acos", Function::acos},
    Entry{"Atan", Function::atan},
    Entry{"Sinh", Function::sinh},
    Entry{"Cosh", Function::cosh},
    Entry{"Asinh", Function::asinh},
    Entry{"Acosh", Function::acosh},
    Entry{"Atanh", Function::atanh},
};

// What is not a number fails both comparisons and stays what it is.
KILTER_INLINE float limited(float x, float low, float high) {
    const float raised = x < low ? low : x;
    return raised > high ? high : raised;
}

// oneDNN's is a difference of numbers about 88 for negative arguments: wrong in the fifth digit below -5, and negative at -20.
KILTER_INLINE float vector_softplus(float x) {
    const float size = x < 0.0F ? -x : x;
    const float positive = x > 0.0F ? x : 0.0F;
    return positive + vector_log1p(vector_exp(-size));
}

// tanh(log(1 + e)) is n / (n + 2) with n = e (e + 2): no digits are lost where e is small. Beyond 20 it is 1.
KILTER_INLINE float vector_mish(float x) {
    const float e = vector_exp(x > 20.0F ? 20.0F : x);
    const float n = e * (e + 2.0F);
    return x * (n / (n + 2.0F));
}

#define EACH(expression)              \
    for (int64_t i = 0; i < n; ++i) { \
        const float v = x[i];         \
        y[i] = (expression);          \
    }                                 \
    return

KILTER_INLINE void map_body(Function function, const float* x, float* y, int64_t n, float a, float b) {
    switch (function) {
        case Function::relu:
            EACH(v < 0.0F ? 0.0F : v);
        case Function::clip:
            EACH(limited(v, a, b));
        case Function::hard_sigmoid:
            EACH(limited(a * v + b, 0.0F, 1.0F));
        case Function::exp:
            EACH(vector_exp(v));
        case Function::elu:
            for (int64_t i = 0; i < n; ++i) {
                const float low = a * vector_expm1(x[i]);
                y[i] = x[i] < 0.0F ? low : x[i];
            }
            return;
        case Function::softplus:
            EACH(vector_softplus(v));
        case Function::mish:
            EACH(vector_mish(v));
        case Function::erf:
            EACH(vector_erf(v));
        case Function::erfc:
            EACH(std::erfc(v));
        case Function::log:
            EACH(vector_log(v));
        case Function::reciprocal:
            EACH(1.0F / v);
        case Function::round:
            EACH(std::nearbyint(v));
        case Function::floor:
            EACH(std::floor(v));
        case Function::ceil:
            EACH(std::ceil(v));
        case Function::sign:
            EACH(v > 0.0F ? 1.0F : (v < 0.0F ? -1.0F : v));
        case Function::softsign:
            EACH(v / (1.0F + std::fabs(v)));
        case Function::celu:
            for (int64_t i = 0; i < n; ++i) {
                const float low = a * vector_expm1(x[i] / a);
                y[i] = x[i] > 0.0F ? x[i] : low;
            }
            return;
        case Function::selu:
            for (int64_t i = 0; i < n; ++i) {
                const float low = a * vector_expm1(x[i]);
                y[i] = b * (x[i] > 0.0F ? x[i] : low);
            }
            return;
        case Function::thresholded_relu:
            EACH(v > a ? v : 0.0F);
        case Function::shrink:
            EACH(v < -a ? v + b : (v > a ? v - b : 0.0F));
        case Function::sin:
            EACH(std::sin(v));
        case Function::cos:
            EACH(std::cos(v));
        case Function::tan:
            EACH(std::tan(v));
        case Function::asin:
            EACH(std::asin(v));
        case Function::acos:
            EACH(std::acos(v));
        case Function::atan:
            EACH(std::atan(v));
        case Function::sinh:
            EACH(std::sinh(v));
        case Function::cosh:
            EACH(std::cosh(v));
        case Function::asinh:
            EACH(std::asinh(v));
        case Function::acosh:
            EACH(std::acosh(v));
        case Function::atanh:
            EACH(std::atanh(v));
    }
}

#undef EACH

KILTER_SIMD(map, (Function function, const float* x, float* y, int64_t n, float a, float b), function, x, y,
            n, a, b)

// A bound of Clip; nothing when it is not known before the run.
std::optional<float> bound(const Builder& builder, const Value* value, float absent) {
    if (value == nullptr) return absent;
    const Tensor* tensor = builder.constant(value);
    if (tensor == nullptr || tensor->size() != 1) return std::nullopt;
    return static_cast<float>(tensor->to_doubles()[0]);
}

bool build(Builder& builder, const Node& node) {
    if (builder.dtype(node.input(0)) != DType::f32) return false;
    const Entry* entry = kFunctions.begin();
    while (entry->op != node.op()) ++entry;
    const Function function = entry->function;
    float alpha = entry->alpha.empty() ? 0 : node.attributes.get_float(entry->alpha, entry->alpha_default);
    float beta = entry->beta.empty() ? 0 : node.attributes.get_float(entry->beta, entry->beta_default);
    if (function == Function::clip) {
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        const auto low = bound(builder, node.input(1), -kInfinity);
        const auto high = bound(builder, node.input(2), kInfinity);
        if (!low || !high) return false;
        alpha = *low;
        beta = *high;
    }
    // The order of the elements does not matter, so any layout will do that has no gaps, and no padding that the function would
    // spoil: it must stay zero.
    int64_t size = element_count(builder.shape(node.input(0)));
    Array x = builder.any(node.input(0));
    if (!x.dense && x.desc.get_size() != byte_count(DType::f32, size)) {
        const float zero = 0;
        float image = 0;
        map(function, &zero, &image, 1, alpha, beta);
        if (image == 0 && is_packed(x.desc))
            size = static_cast<int64_t>(x.desc.get_size() / sizeof(float));
        else
            x = builder.dense(node.input(0));
    }
    Array y = x;
    if (builder.dies_here(x))
        builder.alias(node.output(0), y);
    else
        y = builder.result(node.output(0), x.desc);
    builder.add_native("native", {x}, {y}, [=](Execution& execution) {
        const auto* from = reinterpret_cast<const float*>(execution.address(x));
        auto* to = reinterpret_cast<float*>(execution.address(y));
        for_pieces(size, [&](int64_t start, int64_t count) {
            map(function, from + start, to + start, count, alpha, beta);
        });
    });
    return true;
}

bool build_not(Builder& builder, const Node& node) {
    const Array x = builder.dense(node.input(0));
    const Array y = elementwise_result(builder, node.output(0), {x});
    const int64_t size = element_count(x.shape);
    builder.add_native("native", {x}, {y}, [=](Execution& execution) {
        const auto* from = reinterpret_cast<const uint8_t*>(execution.address(x));
        auto* to = reinterpret_cast<uint8_t*>(execution.address(y));
        for (int64_t i = 0; i < size; ++i) to[i] = from[i] == 0 ? 1 : 0;
    });
    return true;
}

template <class T>
void map_integers(char sign, const char* x, char* y, int64_t size) {
    const T* from = reinterpret_cast<const T*>(x);
    T* to = reinterpret_cast<T*>(y);
    using Unsigned = std::make_unsigned_t<T>;
    for (int64_t i = 0; i < size; ++i) {
        const T negative = static_cast<T>(Unsigned{0} - static_cast<Unsigned>(from[i]));
        if (sign == '-')
            to[i] = negative;
        else if (sign == '|')
            to[i] = from[i] < 0 ? negative : from[i];
        else
            to[i] = static_cast<T>((from[i] > 0) - (from[i] < 0));
    }
}

bool build_integers(Builder& builder, const Node& node) {
    const DType dtype = builder.dtype(node.input(0));
    if (dtype != DType::i64 && dtype != DType::i32) return false;
    const char sign = node.op() == "Neg" ? '-' : node.op() == "Abs" ? '|' : 's';
    const Array x = builder.dense(node.input(0));
    const Array y = elementwise_result(builder, node.output(0), {x});
    const int64_t size = element_count(x.shape);
    builder.add_native("native", {x}, {y}, [=](Execution& execution) {
        if (dtype == DType::i64)
            map_integers<int64_t>(sign, execution.address(x), execution.address(y), size);
        else
            map_integers<int32_t>(sign, execution.address(x), execution.address(y), size);
    });
    return true;
}

const bool kRegistered = [] {
    for (const Entry& entry : kFunctions) RegisterKernel(entry.op, build, entry.domain);
    return true;
}();

KILTER_KERNEL("Not", build_not);
KILTER_KERNEL("Abs", build_integers);
KILTER_KERNEL("Neg", build_integers);
KILTER_KERNEL("Sign", build_integers);

}  // namespace
}  // namespace kilter::engine
