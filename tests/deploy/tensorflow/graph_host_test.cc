#include "kilter/deploy/tensorflow_host.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {
namespace graph_host_test {
namespace {

constexpr int64_t kRows = 200, kInputs = 32, kOutputs = 16;

// x · W + b, where some columns of W are much larger than others.
struct Product {
    Tensor x{DType::f32, {kRows, kInputs}}, w{DType::f32, {kInputs, kOutputs}}, b{DType::f32, {kOutputs}};

    Product() {
        std::mt19937 random(4);
        std::normal_distribution<float> normal;
        for (float& value : x.as_mutable<float>()) value = normal(random);
        const auto weights = w.as_mutable<float>();
        for (size_t i = 0; i < weights.size(); ++i)
            weights[i] = normal(random) * (i % kOutputs == 0 ? 30.0F : 1.0F);
        for (float& value : b.as_mutable<float>()) value = 0.1F;
    }

    QuantizableGraph graph() const {
        TfGraph made;
        TfNode& input = made.add("x", "Placeholder");
        input.attributes.set("dtype", kFloat);
        input.attributes.set("shape", TfShape({-1, kInputs}));
        made.add_constant("w", w.clone());
        made.add_constant("b", b.clone());
        made.add("product", "MatMul", {TfInput("x"), TfInput("w")}).attributes.set("T", kFloat);
        made.add("sum", "BiasAdd", {TfInput("product"), TfInput("b")}).attributes.set("T", kFloat);
        const std::string bytes = GraphDef(std::move(made)).bytes();
        return QuantizableGraph(std::as_bytes(std::span(bytes)), {{"x"}, {"sum"}, {}, {}, {}});
    }

    Stats stats(const QuantizableGraph& graph) const {
        bool given = false;
        return graph.observe([&]() -> std::optional<std::vector<Tensor>> {
            if (given) return std::nullopt;
            given = true;
            return std::vector<Tensor>{x.clone()};
        });
    }
};

// Error of the product as a share of its signal when both sides are rounded.
double measured(const Product& product, bool per_channel) {
    const auto x = product.x.as<float>(), w = product.w.as<float>();
    const auto [low, high] = std::ranges::minmax(x);
    const double step = (high - low) / 255;
    std::vector<double> limits(kOutputs, 0);
    for (size_t i = 0; i < w.size(); ++i)
        limits[i % kOutputs] = std::max(limits[i % kOutputs], std::fabs(double{w[i]}));
    if (!per_channel) limits.assign(kOutputs, *std::ranges::max_element(limits));
    double noise = 0, signal = 0;
    for (size_t r = 0; r < kRows; ++r)
        for (size_t o = 0; o < kOutputs; ++o) {
            double exact = 0, rounded = 0;
            const double scale = limits[o] / 127;
            for (size_t i = 0; i < kInputs; ++i) {
                const double a = x[r * kInputs + i], b = w[i * kOutputs + o];
                exact += a * b;
                rounded += std::nearbyint(a / step) * step * std::nearbyint(b / scale) * scale;
            }
            noise += (exact - rounded) * (exact - rounded);
            signal += exact * exact;
        }
    return noise / signal;
}

TEST(GraphHost, EstimatesTheErrorOfAProduct) {
    const Product product;
    const QuantizableGraph graph = product.graph();
    GraphHost host(graph, product.stats(graph), {});
    Plan plan;
    for (const HostedOperator& entry : host.operators()) plan.operators.push_back(entry.plan);
    ASSERT_EQ(plan.operators.size(), 1U);
    EXPECT_EQ(plan.operators[0].name, "product");
    EXPECT_EQ(plan.operators[0].op, "MatMul");
    EXPECT_NEAR(host.noise(plan)[0] / measured(product, true), 1, 0.25);
    plan.operators[0].weights.granularity = Granularity::per_tensor;
    EXPECT_NEAR(host.noise(plan)[0] / measured(product, false), 1, 0.25);
    const double eight = host.noise(plan)[0];
    plan.operators[0].weights.bits = 4;
    EXPECT_GT(host.noise(plan)[0], 4 * eight);
    plan.operators[0].precision = Precision::f32;
    EXPECT_EQ(host.noise(plan)[0], 0);
}

TEST(GraphHost, CountsMultiplicationsAndBytes) {
    const Product product;
    const QuantizableGraph graph = product.graph();
    GraphHost host(graph, product.stats(graph), {});
    const HostedOperator entry = host.operators().front();
    EXPECT_EQ(entry.multiplications, kRows * kInputs * kOutputs);
    EXPECT_EQ(entry.weight_bytes, 4 * kInputs * kOutputs);
    EXPECT_GE(host.bytes(), 4 * (kInputs * kOutputs + kOutputs));
}

TEST(GraphHost, RunsWhatAPlanMeans) {
    const Product product;
    const QuantizableGraph graph = product.graph();
    std::vector<std::string> seen;
    GraphHost host(graph, product.stats(graph), [&](const GraphDef* candidate) {
        seen.push_back(candidate == nullptr ? "" : candidate->bytes());
        return HostedRun{{1.0}, 2.0, 3};
    });
    const HostedResult result = tune_hosted(host);
    EXPECT_TRUE(result.met);
    ASSERT_GE(seen.size(), 2U);
    EXPECT_EQ(seen[0], "");
    EXPECT_NE(seen[1].find("_QuantizedMatMul"), std::string::npos);
    EXPECT_EQ(host.write(result.plan).graph.bytes(), seen[1]);
}

}  // namespace
}  // namespace graph_host_test
}  // namespace kilter::tensorflow
