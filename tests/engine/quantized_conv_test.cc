// Quantized convolutions: the engine against the scalar kernels bit for bit, and against the float meaning of Q and DQ.
#include "engine/qdq_graphs.h"

namespace kilter::engine::testing::quantized_conv_test {

struct ConvCase {
    Shape x, weights;
    int64_t groups = 1;
    Shape strides = {}, pads = {}, dilations = {};
    Affine source = {}, target = {};
    bool per_channel = true, bias = true;
    std::string activation = {};
};

// NOLINTNEXTLINE: printed by gtest
std::ostream& operator<<(std::ostream& stream, const ConvCase& c) {
    return stream << to_string(c.x) << " * " << to_string(c.weights) << ", groups " << c.groups
                  << ", zero points " << c.source.zero_point << " and " << c.target.zero_point << " "
                  << c.activation;
}

std::vector<ConvCase> conv_cases() {
    const Affine asymmetric{0.05F, 77};
    const Affine unsigned_source{0.05F, 0};
    const Affine signed_source{0.05F, 0, DType::i8};
    const Affine wide{0.31F, 121};
    const Affine positive{0.31F, 0};
    const Affine wide_signed{0.31F, 3, DType::i8};
    return {
        {.x = {1, 16, 9, 9},
         .weights = {32, 16, 3, 3},
         .pads = {1, 1, 1, 1},
         .source = unsigned_source,
         .target = positive},
        {.x = {2, 17, 7, 5}, .weights = {19, 17, 1, 1}, .source = asymmetric, .target = wide},
        {.x = {1, 3, 20, 21},
         .weights = {64, 3, 7, 7},
         .strides = {2, 2},
         .pads = {3, 3, 3, 3},
         .source = asymmetric,
         .target = positive,
         .activation = "Relu"},
        {.x = {1, 35, 11, 9},
         .weights = {35, 1, 3, 3},
         .groups = 35,
         .pads = {1, 1, 1, 1},
         .source = unsigned_source,
         .target = positive},
        {.x = {1, 32, 11, 9},
         .weights = {32, 1, 3, 3},
         .groups = 32,
         .strides = {2, 2},
         .pads = {1, 1, 1, 1},
         .source = asymmetric,
         .target = wide,
         .activation = "Clip"},
        {.x = {1, 32, 8, 8},
         .weights = {32, 1, 5, 5},
         .groups = 32,
         .pads = {2, 2, 2, 2},
         .source = signed_source,
         .target = wide_signed},
        {.x = {3, 24, 6, 10},
         .weights = {36, 6, 3, 3},
         .groups = 4,
         .pads = {1, 0, 2, 1},
         .source = asymmetric,
         .target = wide},
        {.x = {1, 16, 12, 12},
         .weights = {16, 16, 3, 3},
         .pads = {2, 2, 2, 2},
         .dilations = {2, 2},
         .source = unsigned_source,
         .target = wide},
        {.x = {1, 16, 12, 12},
         .weights = {16, 1, 3, 3},
         .groups = 16,
         .pads = {2, 2, 2, 2},
         .dilations = {2, 2},
         .source = asymmetric,
         .target = wide},
        {.x = {2, 144, 13, 70},
         .weights = {144, 1, 3, 3},
         .groups = 144,
         .pads = {1, 1, 1, 1},
         .source = asymmetric,
         .target = wide},
        {.x = {1, 100, 9, 11},
         .weights = {100, 1, 5, 5},
         .groups = 100,
         .strides = {1, 2},
         .pads = {2, 3, 2, 1},
         .source = asymmetric,
         .target = wide_signed,
         .per_channel = false,
         .activation = "Relu"},
        {.x = {1, 64, 12, 9},
         .weights = {64, 1, 1, 7},
         .groups = 64,
         .pads = {0, 6, 0, 6},
         .dilations = {1, 2},
         .source = unsigned_source,
         .target = positive,
         .bias = false},
        {.x = {2, 8, 15}, .weights = {24, 8, 3}, .pads = {2, 0}, .source = asymmetric, .target = wide},
        {.x = {1, 5, 4, 6, 7},
         .weights = {9, 5, 2, 3, 3},
         .pads = {0, 1, 1, 1, 1, 0},
         .source = asymmetric,
         .target = wide},
        {.x = {1, 1, 1, 1}, .weights = {1, 1, 1, 1}, .source = asymmetric, .target = wide},
        {.x = {1, 64, 7, 7},
         .weights = {256, 64, 1, 1},
         .source = signed_source,
         .target = wide,
         .per_channel = false,
         .bias = false},
        {.x = {1, 64, 10, 10},
         .weights = {48, 64, 3, 3},
         .strides = {2, 1},
         .pads = {1, 1, 0, 1},
         .source = signed_source,
         .target = wide_signed,
         .activation = "Relu"},
        {.x = {1, 24, 9, 9},
         .weights = {40, 24, 1, 1},
         .source = asymmetric,
         .target = wide,
         .activation = "HardSwish"},
        {.x = {1, 24, 9, 9},
         .weights = {40, 24, 3, 3},
         .source = asymmetric,
         .target = wide,
         .activation = "LeakyRelu"},
    };
}

Value* convolve(QdqGraph& graph, Value* x, Value* weights, const ConvCase& c) {
    Attributes attributes = with("group", c.groups);
    if (!c.strides.empty()) attributes.set("strides", c.strides);
    if (!c.pads.empty()) attributes.set("pads", c.pads);
    if (!c.dilations.empty()) attributes.set("dilations", c.dilations);
    std::vector<Value*> inputs{x, weights};
    if (c.bias) inputs.push_back(graph.bias(c.weights[0]));
    Value* y = graph.op("Conv", inputs, attributes);
    if (c.activation == "Clip")
        return graph.op("Clip", {y, graph.graph().add_constant(Tensor::scalar<float>(-1.0F)),
                                 graph.graph().add_constant(Tensor::scalar<float>(6.0F))});
    return c.activation.empty() ? y : graph.op(c.activation, {y});
}

QdqGraph single(const ConvCase& c) {
    QdqGraph graph;
    Value* x = graph.both(
        graph.input(c.x, c.source.zero_point == 0 && c.source.dtype == DType::u8 ? 0 : -6, 6), c.source);
    graph.output(
        graph.quantize(convolve(graph, x, graph.weights(c.weights, c.per_channel ? 0 : -1), c), c.target));
    return graph;
}

TEST(QuantizedConv, GivesTheBitsOfTheScalarKernel) {
    for (const ConvCase& c : conv_cases()) {
        SCOPED_TRACE(::testing::PrintToString(c));
        const QdqGraph graph = single(c);
        EXPECT_EQ(graph.count("QConv"), 1);
        EXPECT_EQ(graph.count("DequantizeLinear", ""), 0);
        graph.expect_same_bits();
    }
}

TEST(QuantizedConv, RunsDepthwiseConvolutionsInItsOwnKernel) {
    if (!__builtin_cpu_supports("avx512vnni")) GTEST_SKIP() << "this CPU has no AVX512-VNNI";
    int found = 0;
    for (const ConvCase& c : conv_cases())
        for (const StepReport& step : single(c).steps())
            found += step.kernel == "depthwise:avx512_vnni" ? 1 : 0;
    EXPECT_EQ(found, 5);
}

TEST(QuantizedConv, MeansWhatTheFloatOperatorsMean) {
    for (const ConvCase& c : conv_cases()) {
        SCOPED_TRACE(::testing::PrintToString(c));
        single(c).expect_float_meaning(1.0);
    }
}

TEST(QuantizedConv, EmitsFloatsWhenNothingQuantizesThem) {
    for (const ConvCase& c : conv_cases()) {
        SCOPED_TRACE(::testing::PrintToString(c));
        QdqGraph graph;
        Value* x = graph.both(graph.input(c.x), c.source);
        graph.output(convolve(graph, x, graph.weights(c.weights, c.per_channel ? 0 : -1), c));
        EXPECT_EQ(graph.count("QConv"), 1);
        graph.expect_same_bits();
    }
}

TEST(QuantizedConv, RunsNoReferenceImplementation) {
    for (const ConvCase& c : conv_cases()) {
        if (c.x.size() != 4 || element_count(c.x) < 100) continue;
        SCOPED_TRACE(::testing::PrintToString(c));
        for (const StepReport& step : single(c).steps())
            EXPECT_FALSE(step.kernel.starts_with("ref")) << step.op;
    }
}

// The residual in its own quantization: as it is stored, in place, or kept for another reader.
TEST(QuantizedConv, AddsAResidualInTheSameKernel) {
    for (const Affine& residual : {Affine{0.11F, 17}, Affine{0.2F, 0}, Affine{0.08F, -5, DType::i8}})
        for (const Affine& target : {Affine{0.31F, 121}, Affine{0.31F, 0}, Affine{0.31F, 3, DType::i8}})
            for (const bool kept : {false, true}) {
                QdqGraph graph;
                const ConvCase first{.x = {1, 24, 9, 9}, .weights = {48, 24, 1, 1}};
                const ConvCase second{.x = {1, 48, 9, 9}, .weights = {48, 48, 3, 3}, .pads = {1, 1, 1, 1}};
                Value* x = graph.both(graph.input(first.x), {0.05F, 77});
                Value* shortcut =
                    graph.both(convolve(graph, x, graph.weights(first.weights, 0), first), residual);
                Value* inner = graph.both(convolve(graph, shortcut, graph.weights(second.weights, 0), second),
                                          {0.6F, 99});
                Value* y = convolve(graph, inner, graph.weights(second.weights, 0), second);
                Value* sum = graph.op("Relu", {graph.op("Add", {y, shortcut})});
                graph.output(graph.quantize(sum, target));
                if (kept) graph.output(graph.op("Neg", {shortcut}));
                EXPECT_EQ(graph.count("QConv"), 3);
                EXPECT_EQ(graph.count("QAdd"), 0);
                graph.expect_same_bits();
            }
}

TEST(QuantizedConv, AddsAQuantizedResidualToAFloatResult) {
    QdqGraph graph;
    const ConvCase c{.x = {2, 16, 6, 5}, .weights = {16, 16, 3, 3}, .pads = {1, 1, 1, 1}};
    Value* x = graph.both(graph.input(c.x), {0.05F, 77});
    graph.output(graph.op("Add", {convolve(graph, x, graph.weights(c.weights, 0), c), x}));
    EXPECT_EQ(graph.count("QConv"), 1);
    graph.expect_same_bits();
}

TEST(QuantizedConv, AddsAFloatResidual) {
    QdqGraph graph;
    const ConvCase c{.x = {2, 16, 6, 5}, .weights = {16, 16, 3, 3}, .pads = {1, 1, 1, 1}};
    Value* input = graph.input(c.x);
    Value* x = graph.both(input, {0.05F, 77});
    Value* sum =
        graph.op("Add", {convolve(graph, x, graph.weights(c.weights, 0), c), graph.op("Tanh", {input})});
    graph.output(graph.quantize(sum, {0.31F, 121}));
    EXPECT_EQ(graph.count("QConv"), 1);
    graph.expect_nearly_same();
}

TEST(QuantizedConv, SharesWeightsBetweenSourcesOfDifferentKinds) {
    QdqGraph graph;
    const ConvCase c{.x = {1, 32, 8, 8}, .weights = {32, 32, 3, 3}, .pads = {1, 1, 1, 1}};
    Value* weights = graph.weights(c.weights, 0);
    Value* input = graph.input(c.x, 0, 6);
    for (const Affine& source :
         {Affine{0.05F, 0}, Affine{0.05F, 77}, Affine{0.05F, 0, DType::i8}, Affine{0.05F, 3, DType::i8}})
        graph.output(graph.quantize(convolve(graph, graph.both(input, source), weights, c), {0.31F, 121}));
    EXPECT_EQ(graph.count("QConv"), 4);
    graph.expect_same_bits();
}

TEST(QuantizedConv, ServesTwoReaders) {
    QdqGraph graph;
    const ConvCase c{.x = {1, 16, 8, 8}, .weights = {16, 16, 3, 3}, .pads = {1, 1, 1, 1}};
    Value* x = graph.both(graph.input(c.x), {0.05F, 77});
    Value* y = graph.both(convolve(graph, x, graph.weights(c.weights, 0), c), {0.31F, 121});
    graph.output(graph.quantize(convolve(graph, y, graph.weights(c.weights, 0), c), {2.0F, 121}));
    graph.output(graph.quantize(convolve(graph, y, graph.weights(c.weights, 0), c), {2.1F, 100}));
    graph.output(graph.op("Sigmoid", {y}));
    EXPECT_EQ(graph.count("QConv"), 3);
    graph.expect_nearly_same();
}

TEST(QuantizedConv, KeepsAFloatOperatorWhereOnlyTheWeightsAreQuantized) {
    QdqGraph graph;
    const ConvCase c{.x = {1, 16, 8, 8}, .weights = {16, 16, 3, 3}, .pads = {1, 1, 1, 1}};
    graph.output(convolve(graph, graph.input(c.x), graph.weights(c.weights, 0), c));
    EXPECT_EQ(graph.count("QConv"), 0);
    EXPECT_EQ(graph.count("DequantizeLinear", ""), 0);
    graph.expect_float_meaning(1e-3);
}

TEST(QuantizedConvTranspose, GivesTheBitsOfTheScalarKernel) {
    struct Case {
        Shape x, weights, strides, pads;
        int64_t groups;
        int axis;
    };
    for (const Case& c : {Case{{1, 16, 5, 6}, {16, 24, 2, 2}, {2, 2}, {0, 0, 0, 0}, 1, 1},
                          Case{{2, 7, 5, 6}, {7, 9, 3, 3}, {2, 1}, {1, 0, 0, 1}, 1, 1},
                          Case{{1, 12, 4, 4}, {12, 4, 4, 4}, {2, 2}, {1, 1, 1, 1}, 3, -1}})
        for (const Affine& source : {Affine{0.05F, 0}, Affine{0.05F, 77}}) {
            SCOPED_TRACE(to_string(c.x));
            QdqGraph graph;
            Attributes attributes = with("strides", c.strides);
            attributes.set("pads", c.pads);
            attributes.set("group", c.groups);
            Value* x = graph.both(graph.input(c.x), source);
            Value* y = graph.op("ConvTranspose",
                                {x, graph.weights(c.weights, c.axis), graph.bias(c.weights[1] * c.groups)},
                                attributes);
            graph.output(graph.quantize(graph.op("Relu", {y}), {0.31F, 0}));
            EXPECT_EQ(graph.count("QConvTranspose"), 1);
            graph.expect_same_bits();
            graph.expect_float_meaning(1.0);
        }
}

TEST(QuantizedConv, RunsAnyBatchOfADynamicModel) {
    for (const int64_t batch : {1, 3}) {
        QdqGraph graph;
        const ConvCase c{.x = {batch, 16, 8, 8}, .weights = {16, 16, 3, 3}, .pads = {1, 1, 1, 1}};
        Value* x = graph.both(graph.input(c.x, -4, 4, true), {0.05F, 77});
        Value* y = convolve(graph, x, graph.weights(c.weights, 0), c);
        graph.output(graph.quantize(graph.op("Relu", {graph.op("Add", {y, x})}), {0.31F, 0}));
        graph.expect_same_bits();
    }
}

}  // namespace kilter::engine::testing::quantized_conv_test
