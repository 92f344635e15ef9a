#include <gtest/gtest.h>

#include "quantization/overflow_safe.h"
#include "quantization/testing.h"

namespace kilter::recipes_test {

using namespace testing;

double spread(const Tensor& weights) {
    // Largest against smallest channel range, along the first axis.
    const size_t rows = static_cast<size_t>(weights.dim(0));
    const size_t inner = static_cast<size_t>(weights.size()) / rows;
    float low = std::numeric_limits<float>::max(), high = 0;
    for (size_t i = 0; i < rows; ++i) {
        float largest = 0;
        for (size_t j = 0; j < inner; ++j)
            largest = std::max(largest, std::fabs(weights.as<float>()[i * inner + j]));
        low = std::min(low, largest);
        high = std::max(high, largest);
    }
    return high / low;
}

void scale_rows(Graph& graph, Value* weights, unsigned seed) {
    Tensor tensor = graph.constant(weights)->clone();
    const Tensor factors = random_tensor({tensor.dim(0)}, seed, -3.0F, 3.0F);
    const size_t inner = static_cast<size_t>(tensor.size() / tensor.dim(0));
    for (size_t i = 0; i < static_cast<size_t>(tensor.size()); ++i)
        tensor.as_mutable<float>()[i] *= std::exp(factors.as<float>()[i / inner]);
    graph.replace_constant(weights, tensor);
}

// conv → relu → depthwise → relu → conv, with channels of very different sizes
Net uneven_chain() {
    Net net;
    Value* y = net.relu_conv(net.input({1, 3, 6, 6}), 8, "a");
    scale_rows(net.graph(), y->producer()->input(1), 1);
    y = net.grouped(y, 8, 8, "dw");
    append_post_op(net.graph(), *y->producer(), "relu");
    scale_rows(net.graph(), y->producer()->input(1), 2);
    net.output(net.conv(y, 4, "b"));
    return net;
}

TEST(Equalization, KeepsTheFunctionAndEvensOutTheChannels) {
    Net net = uneven_chain();
    Graph graph = net.graph().clone();
    const std::vector<Tensor> inputs = random_inputs(graph);
    const auto before = ref::run(graph, inputs);
    const Equalized done = equalize(graph);
    EXPECT_EQ(done.pairs, 2);
    EXPECT_EQ(done.clips_split, 0);
    expect_near(ref::run(graph, inputs), before, 1e-4);
    const Node* a = find_node(graph, "Conv", kKilterDomain);
    EXPECT_LT(spread(*graph.constant(a->input(1))),
              0.2 * spread(*net.graph().constant(net.graph().find("a/out")->producer()->input(1))));
}

TEST(Equalization, MakesPerTensorWeightsBetter) {
    Net net = uneven_chain();
    QuantizeOptions options;
    options.overrides = {{Override::Of::model, {}, {.granularity = Granularity::per_tensor}}};
    const double plain = net.quantize(options).error();
    equalize(net.graph());
    EXPECT_LT(net.quantize(options).error(), 0.5 * plain);
}

TEST(Equalization, ScalesTheLimitOfAClipWithTheChannel) {
    Net net;
    Value* y = net.conv(net.input({1, 3, 6, 6}), 8, "a", 10.0F);
    append_post_op(net.graph(), *y->producer(), "clip", 0.0F, 6.0F);
    scale_rows(net.graph(), y->producer()->input(1), 1);
    net.output(net.conv(y, 4, "b"));
    const std::vector<Tensor> inputs = random_inputs(net.graph());
    const auto before = ref::run(net.graph(), inputs);
    const Equalized done = equalize(net.graph());
    EXPECT_EQ(done.pairs, 1);
    EXPECT_EQ(done.clips_split, 1);
    expect_near(ref::run(net.graph(), inputs), before, 1e-4);
}

TEST(Equalization, LeavesSharedAndNonHomogeneousOnesAlone) {
    Net net;
    Value* y = net.conv(net.input({1, 3, 6, 6}), 8, "a");
    append_post_op(net.graph(), *y->producer(), "sigmoid");
    Value* z = net.relu_conv(y, 4, "b");
    net.output(net.conv(z, 4, "c"));
    net.output(net.conv(z, 4, "d"));
    EXPECT_EQ(equalize(net.graph()).pairs, 0);
}

TEST(SmoothQuant, KeepsTheFunctionInEveryWayOfFolding) {
    Net net;
    Value* norm = net.layer_norm(net.input({2, 5, 8}), 8, "norm");  // folded into the normalization
    Value* y = net.relu_matmul(norm, 8, 8, "a");                    // becomes a post-op
    y = net.matmul(y, 8, 8, "b");
    Value* shared = net.layer_norm(y, 8, "shared");  // read by others too: a multiplication
    Value* z = net.matmul(shared, 8, 8, "c");
    append_post_op(net.graph(), *z->producer(), "add", 0, 0, shared);
    net.output(z);
    Graph graph = net.graph().clone();
    const std::vector<Tensor> inputs = random_inputs(graph);
    const auto before = ref::run(graph, inputs);
    EXPECT_EQ(smooth_quant(graph, observe(graph, inputs), 0.5), 3);
    verify(graph);
    expect_near(ref::run(graph, inputs), before, 1e-4);
    EXPECT_EQ(graph.count("Mul"), 1U);
    EXPECT_EQ(smooth_quant(graph, Stats{}, 0.5), 0);
}

TEST(SmoothQuant, HelpsWithOutlierChannels) {
    Net net;
    Value* norm = net.layer_norm(net.input({4, 16, 32}), 32, "norm");
    Tensor gamma = net.graph().constant(norm->producer()->input(1))->clone();
    gamma.as_mutable<float>()[3] = 60.0F;
    gamma.as_mutable<float>()[17] = 40.0F;
    net.graph().replace_constant(norm->producer()->input(1), gamma);
    Value* y = net.matmul(norm, 32, 16, "a");
    Tensor w = net.graph().constant(y->producer()->input(1))->clone();
    for (size_t row : {3U, 17U})
        for (size_t j = 0; j < 16; ++j) w.as_mutable<float>()[row * 16 + j] *= 0.01F;
    net.graph().replace_constant(y->producer()->input(1), w);
    net.output(y);
    const double plain = net.quantize().error();
    smooth_quant(net.graph(), observe(net.graph(), random_inputs(net.graph())), 0.5);
    EXPECT_LT(net.quantize().error(), 0.5 * plain);
}

TEST(BiasCorrection, RemovesTheShiftOfTheMean) {
    Net net;
    Value* y = net.conv(net.relu_conv(net.input({1, 4, 10, 10}), 16, "a"), 8, "b");
    net.output(y);
    QuantizeOptions options;
    options.overrides = {{Override::Of::model, {}, {.bits = 3}}};
    const auto shift = [&](const Quantized& done) {
        const std::vector<double> wanted = ref::run(done.original, done.inputs)[0].to_doubles();
        const std::vector<double> found = done.run()[0].to_doubles();
        double total = 0;
        for (size_t c = 0; c < 8; ++c) {
            double sum = 0;
            for (size_t i = 0; i < 100; ++i) sum += found[c * 100 + i] - wanted[c * 100 + i];
            total += std::fabs(sum / 100);
        }
        return total;
    };
    options.exclude = {"a"};  // its errors are not what "b" can correct
    options.recipes.bias_correction = false;
    const double plain = shift(net.quantize(options));
    options.recipes.bias_correction = true;
    EXPECT_LT(shift(net.quantize(options)), 0.3 * plain);
}

TEST(BiasCorrection, WorksForDepthwiseGroupedAndMatMul) {
    for (const int64_t group : {1, 2, 8}) {
        Net net;
        net.output(net.conv(net.input({1, 8, 5, 5}), 8, "a", 1.0F, group));
        const Node& node = *net.graph().find("a/out")->producer();
        const Tensor& exact = *net.graph().constant(node.input(1));
        Tensor rounded = exact.clone();
        for (float& w : rounded.as_mutable<float>()) w += 0.25F;
        ValueStats stats;
        stats.channel_axis = 1;
        stats.channel_mean.assign(8, 2.0);
        const Tensor shift = bias_correction(node, exact, rounded, &stats);
        for (const float value : shift.as<float>())
            EXPECT_NEAR(value, -0.25 * 2.0 * static_cast<double>(8 / group), 1e-4);
    }
}

TEST(OverflowSafe, ShrinksOffendingChannelsOnly) {
    Net net;
    net.output(net.matmul(net.input({2, 4}), 4, 2, "fc"));
    const Node& node = *net.graph().find("fc/out")->producer();
    // Column 0 has two large neighbours of one sign, column 1 has large ones of different signs.
    const Tensor weights = Tensor::of<float>({4, 2}, {1, 1, 1, -1, 0.1F, 0.2F, 0.3F, 0.4F});
    QuantParams params = weight_params(weights, 1);
    const QuantParams before = params;
    EXPECT_EQ(make_overflow_safe(params, weights, node, 8), 1);
    EXPECT_GT(params.scales[0], before.scales[0]);
    EXPECT_EQ(params.scales[1], before.scales[1]);
    const Tensor integers = quantize_tensor(weights, params);
    EXPECT_LE(integers.as<int8_t>()[0] + integers.as<int8_t>()[2], 128);
    EXPECT_GE(integers.as<int8_t>()[0] + integers.as<int8_t>()[2], 120);
}

TEST(OverflowSafe, IsRecordedInTheResult) {
    Net net;
    net.output(net.conv(net.input({1, 4, 4, 4}), 4, "a"));
    QuantizeOptions options;
    options.recipes.overflow_safe = true;
    const Quantized done = net.quantize(options);
    EXPECT_EQ(done.result.assumptions[0].first, "isa");
    EXPECT_EQ(done.result.assumptions[0].second.substr(0, 3), "any");
    done.expect_close(0.05);
}

TEST(Ends, FirstAndLastProductsStayInFloat) {
    Net net;
    Value* y = net.relu_conv(net.input({1, 3, 6, 6}), 4, "first");
    y = net.relu_conv(y, 4, "middle");
    net.output(net.conv(y, 4, "last"));
    QuantizeOptions options;
    enable(options.recipes, "float-first");
    enable(options.recipes, "float_last");
    const Plan plan = make_plan(net.graph(), options);
    EXPECT_EQ(plan.find("first")->precision, Precision::f32);
    EXPECT_EQ(plan.find("middle")->precision, Precision::int8);
    EXPECT_EQ(plan.find("last")->precision, Precision::f32);
    EXPECT_THROW(enable(options.recipes, "magic"), Error);
}

}  // namespace kilter::recipes_test
