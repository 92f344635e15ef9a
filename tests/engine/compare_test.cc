#include "kilter/engine/compare.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kilter/base/error.h"

namespace kilter::compare_test {

// y = relu(x · w) with a name for the product; with `scale`, x and w are rounded to multiples of it.
Model product(float scale = 0) {
    Model model;
    model.opsets = {{"", kCanonicalOpset}};
    Graph& graph = model.graph;
    Value* x = graph.add_input("x", {DType::f32, Dims{Dim("n"), Dim(8)}});
    Tensor weights(DType::f32, {8, 4});
    for (size_t i = 0; i < 32; ++i) weights.as_mutable<float>()[i] = std::sin(static_cast<float>(i));
    Value* w = graph.add_constant(weights, "w");
    if (scale > 0) {
        Value* step = graph.add_constant(Tensor::scalar(scale));
        Value* middle = graph.add_constant(Tensor::scalar<uint8_t>(128));
        Value* zero = graph.add_constant(Tensor::scalar<int8_t>(0));
        x = graph.add("DequantizeLinear",
                      {graph.add("QuantizeLinear", {x, step, middle}, {}, "x_q"), step, middle});
        w = graph.add("DequantizeLinear", {graph.add("QuantizeLinear", {w, step, zero}), step, zero});
    }
    Value* y = graph.add("MatMul", {x, w}, {}, "product");
    graph.add_output(graph.add("Relu", {y}, {}, "last"), "y");
    return model;
}

Tensor input() {
    Tensor x(DType::f32, {1, 8});
    for (size_t i = 0; i < 8; ++i) x.as_mutable<float>()[i] = std::cos(static_cast<float>(i));
    return x;
}

TEST(Comparison, FindsNoDriftBetweenAModelAndItself) {
    const Program a(product());
    const Program b(product());
    Comparison comparison(a, b);
    comparison.add({input()});
    ASSERT_EQ(comparison.outputs().size(), 1U);
    EXPECT_TRUE(std::isinf(comparison.outputs()[0].snr_db));
    ASSERT_FALSE(comparison.operators().empty());
    for (const Drift& drift : comparison.operators()) EXPECT_EQ(drift.max_error, 0) << drift.name;
}

TEST(Comparison, FinerStepsMeanMoreSignalForTheSameNoise) {
    const Program a(product());
    double last = 0;
    for (const float scale : {0.1F, 0.01F}) {
        const Program b(product(scale));
        Comparison comparison(a, b);
        comparison.add({input()});
        const Drift output = comparison.outputs().at(0);
        EXPECT_EQ(output.name, "y");
        EXPECT_GT(output.snr_db, last + 5);
        EXPECT_LT(output.snr_db, 70);
        last = output.snr_db;
        const std::vector<Drift> operators = comparison.operators();
        ASSERT_EQ(operators.size(), 1U);
        EXPECT_EQ(operators[0].name, "product");
        EXPECT_NEAR(operators[0].snr_db, output.snr_db, 1e-6);
    }
}

TEST(Comparison, ModelsMustMatch) {
    Model other = product();
    other.graph.rename(other.graph.inputs()[0], "z");
    const Program a(product());
    const Program b(std::move(other));
    EXPECT_THROW(Comparison(a, b), Error);
}

}  // namespace kilter::compare_test
