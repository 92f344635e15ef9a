// RandomNormal, RandomUniform, their Like forms, Bernoulli and Multinomial: random tensors, repeatable
// when `seed` is given.
#include <bit>
#include <cmath>
#include <random>

#include "base/convert.h"
#include "base/fail.h"
#include "graph/onnx_dtype.h"
#include "ops/movement.h"

namespace kilter::random_op {

using Generator = std::mt19937_64;

Generator generator_of(const Attributes& attributes) {
    if (attributes.has("seed")) return Generator(std::bit_cast<uint32_t>(attributes.get_float("seed")));
    return Generator(std::random_device()());
}

bool is_like(const Node& node) { return node.op().ends_with("Like") || node.is("Bernoulli"); }

DType result_dtype(const Node& node, DType own) {
    if (node.attributes.has("dtype")) return dtype_from_onnx(node.attributes.get_int("dtype"));
    return is_like(node) ? own : DType::f32;
}

void infer(InferContext& context) {
    ValueType type;
    if (is_like(context.node())) {
        type = context.input(0);
    } else {
        const Shape shape = context.attributes().get_ints("shape");
        element_count(shape);  // rejects negative and absurd dimensions
        type.shape = to_dims(shape);
    }
    type.dtype = result_dtype(context.node(), type.dtype);
    context.set_output(0, std::move(type));
}

Tensor& result_of(KernelContext& context) {
    const bool like = is_like(context.node());
    const DType own = like ? context.input(0).dtype() : DType::undefined;
    const Shape shape = like ? context.input(0).shape() : context.attributes().get_ints("shape");
    const DType dtype = result_dtype(context.node(), own);
    require_reasonable_size(dtype, shape);
    return context.output(0, dtype, shape);
}

void normal(KernelContext& context) {
    Tensor& y = result_of(context);
    Generator generator = generator_of(context.attributes());
    const double mean = context.attributes().get_float("mean", 0);
    const double scale = context.attributes().get_float("scale", 1);
    std::normal_distribution<double> distribution(0, 1);
    for (int64_t i = 0; i < y.size(); ++i)
        store_double(y.dtype(), y.raw_mutable(), i, mean + scale * distribution(generator));
}

void uniform(KernelContext& context) {
    Tensor& y = result_of(context);
    Generator generator = generator_of(context.attributes());
    const double low = context.attributes().get_float("low", 0);
    const double high = context.attributes().get_float("high", 1);
    std::uniform_real_distribution<double> distribution(0, 1);
    for (int64_t i = 0; i < y.size(); ++i)
        store_double(y.dtype(), y.raw_mutable(), i, low + (high - low) * distribution(generator));
}

void bernoulli(KernelContext& context) {
    const Tensor& x = context.input(0);
    Tensor& y = result_of(context);
    Generator generator = generator_of(context.attributes());
    std::uniform_real_distribution<double> distribution(0, 1);
    for (int64_t i = 0; i < y.size(); ++i)
        store_double(y.dtype(), y.raw_mutable(), i,
                     distribution(generator) < load_double(x.dtype(), x.raw(), i) ? 1 : 0);
}

int64_t sample_size(const Attributes& attributes) {
    const int64_t samples = attributes.get_int("sample_size", 1);
    require(samples >= 0, "sample_size must not be {}", samples);
    return samples;
}

DType class_dtype(const Attributes& attributes) {
    return attributes.has("dtype") ? dtype_from_onnx(attributes.get_int("dtype")) : DType::i32;
}

void infer_multinomial(InferContext& context) {
    require(context.rank(0) < 0 || context.rank(0) == 2, "expected a matrix, found a tensor of rank {}",
            context.rank(0));
    const Dim batch = context.shape(0) ? (*context.shape(0))[0] : Dim();
    context.set_output(0, class_dtype(context.attributes()), {batch, Dim(sample_size(context.attributes()))});
}

// Rows hold unnormalised log-probabilities of the classes.
void multinomial(KernelContext& context) {
    const Tensor& x = context.input(0);
    require(x.rank() == 2 && x.dim(1) > 0, "expected a matrix of classes, found {}", to_string(x.shape()));
    const Shape shape{x.dim(0), sample_size(context.attributes())};
    const DType dtype = class_dtype(context.attributes());
    require_reasonable_size(dtype, shape);
    Tensor& y = context.output(0, dtype, shape);
    Generator generator = generator_of(context.attributes());
    for (int64_t row = 0; row < x.dim(0); ++row) {
        std::vector<double> weights;
        for (int64_t k = 0; k < x.dim(1); ++k)
            weights.push_back(std::exp(load_double(x.dtype(), x.raw(), row * x.dim(1) + k)));
        std::discrete_distribution<int64_t> distribution(weights.begin(), weights.end());
        for (int64_t i = 0; i < shape[1]; ++i)
            store_int(dtype, y.raw_mutable(), row * shape[1] + i, distribution(generator));
    }
}

std::vector<AttributeSpec> attributes_with(std::vector<AttributeSpec> own) {
    own.push_back({"dtype", AttributeKind::integer});
    own.push_back({"seed", AttributeKind::real});
    return own;
}

KILTER_OP({.name = "RandomNormal",
           .min_inputs = 0,
           .max_inputs = 0,
           .attributes = attributes_with({{"shape", AttributeKind::integers, true},
                                          {"mean", AttributeKind::real},
                                          {"scale", AttributeKind::real}}),
           .infer = infer,
           .kernel = normal,
           .deterministic = false});
KILTER_OP({.name = "RandomNormalLike",
           .attributes = attributes_with({{"mean", AttributeKind::real}, {"scale", AttributeKind::real}}),
           .infer = infer,
           .kernel = normal,
           .deterministic = false});
KILTER_OP({.name = "RandomUniform",
           .min_inputs = 0,
           .max_inputs = 0,
           .attributes = attributes_with({{"shape", AttributeKind::integers, true},
                                          {"low", AttributeKind::real},
                                          {"high", AttributeKind::real}}),
           .infer = infer,
           .kernel = uniform,
           .deterministic = false});
KILTER_OP({.name = "RandomUniformLike",
           .attributes = attributes_with({{"low", AttributeKind::real}, {"high", AttributeKind::real}}),
           .infer = infer,
           .kernel = uniform,
           .deterministic = false});
KILTER_OP({.name = "Bernoulli",
           .attributes = attributes_with({}),
           .infer = infer,
           .kernel = bernoulli,
           .deterministic = false});
KILTER_OP({.name = "Multinomial",
           .attributes = attributes_with({{"sample_size", AttributeKind::integer}}),
           .infer = infer_multinomial,
           .kernel = multinomial,
           .deterministic = false});

}  // namespace kilter::random_op
