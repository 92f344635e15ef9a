// Quantized products, attention, normalization, arithmetic, pools and what only moves numbers.
#include <fmt/format.h>

#include "engine/qdq_graphs.h"

namespace kilter::engine::testing::quantized_ops_test {

struct ProductCase {
    Shape a, b;
    bool trans_b = false;
    Affine source = {0.05F, 77}, target = {0.31F, 121};
    bool per_column = true, bias = true;
    std::string activation = {};
};

// NOLINTNEXTLINE: printed by gtest
std::ostream& operator<<(std::ostream& stream, const ProductCase& c) {
    return stream << to_string(c.a) << " * " << to_string(c.b) << (c.trans_b ? "ᵀ" : "") << ", zero points "
                  << c.source.zero_point << " and " << c.target.zero_point << " " << c.activation;
}

std::vector<ProductCase> product_cases() {
    const Affine positive{0.31F, 0};
    const Affine unsigned_source{0.05F, 0};
    const Affine signed_source{0.05F, 0, DType::i8};
    return {
        {.a = {7, 33}, .b = {33, 65}},
        {.a = {1, 64}, .b = {10, 64}, .trans_b = true, .source = unsigned_source},
        {.a = {2, 17, 48}, .b = {48, 96}, .activation = "Relu"},
        {.a = {2, 3, 5, 32}, .b = {32, 40}, .source = signed_source, .target = positive},
        {.a = {128, 96}, .b = {96, 64}, .per_column = false, .bias = false},
        {.a = {1, 1}, .b = {1, 1}},
        {.a = {31, 200}, .b = {200, 8}, .source = signed_source, .target = {0.31F, -4, DType::i8}},
    };
}

Value* multiply(QdqGraph& graph, Value* a, const ProductCase& c) {
    const int columns = c.trans_b ? 0 : 1;
    Value* b = graph.weights(c.b, c.per_column ? columns : -1);
    if (c.trans_b) b = graph.op("Transpose", {b}, with("perm", std::vector<int64_t>{1, 0}));
    Value* y = graph.op("MatMul", {a, b});
    if (c.bias) y = graph.op("Add", {y, graph.bias(c.b[static_cast<size_t>(columns)])});
    return c.activation.empty() ? y : graph.op(c.activation, {y});
}

TEST(QuantizedMatMul, GivesTheBitsOfTheScalarKernel) {
    for (const ProductCase& c : product_cases())
        for (const bool floats : {false, true}) {
            SCOPED_TRACE(::testing::PrintToString(c));
            QdqGraph graph;
            Value* y = multiply(graph, graph.both(graph.input(c.a), c.source), c);
            graph.output(floats ? y : graph.quantize(y, c.target));
            EXPECT_EQ(graph.count("QMatMul"), 1);
            EXPECT_EQ(graph.count("Add", ""), 0);
            graph.expect_same_bits();
            for (const StepReport& step : graph.steps())
                EXPECT_FALSE(step.kernel.starts_with("ref")) << step.op;
        }
}

TEST(QuantizedMatMul, MeansWhatTheFloatOperatorsMean) {
    for (const ProductCase& c : product_cases()) {
        SCOPED_TRACE(::testing::PrintToString(c));
        QdqGraph graph;
        graph.output(graph.quantize(multiply(graph, graph.both(graph.input(c.a), c.source), c), c.target));
        graph.expect_float_meaning(1.0);
    }
}

TEST(QuantizedMatMul, TakesAGeluAndAResidual) {
    QdqGraph graph;
    Value* input = graph.input({1, 20, 48});
    Value* x = graph.both(input, {0.05F, 77});
    const ProductCase wide{.a = {1, 20, 48}, .b = {48, 96}, .activation = "Gelu"};
    const ProductCase narrow{.a = {1, 20, 96}, .b = {96, 48}};
    Value* hidden = graph.both(multiply(graph, x, wide), {0.1F, 3});
    graph.output(graph.op("Add", {multiply(graph, hidden, narrow), input}));
    EXPECT_EQ(graph.count("QMatMul"), 2);
    EXPECT_EQ(graph.count("Add", ""), 0);
    graph.expect_float_meaning(1.0);
    for (const StepReport& step : graph.steps()) EXPECT_FALSE(step.kernel.starts_with("ref")) << step.op;
}

TEST(QuantizedMatMul, ReadsAGemm) {
    QdqGraph graph;
    Value* x = graph.both(graph.input({3, 40}), {0.05F, 77});
    Attributes attributes = with("transB", int64_t{1});
    graph.output(graph.quantize(graph.op("Gemm", {x, graph.weights({24, 40}, 0), graph.bias(24)}, attributes),
                                {0.31F, 9}));
    EXPECT_EQ(graph.count("QMatMul"), 1);
    graph.expect_same_bits();
}

TEST(QuantizedMatMul, MultipliesTwoComputedMatrices) {
    for (const Affine& second :
         {Affine{0.05F, 0, DType::i8}, Affine{0.05F, 7, DType::i8}, Affine{0.05F, 100}, Affine{0.05F, 128}}) {
        QdqGraph graph;
        Value* a = graph.both(graph.input({2, 3, 9, 32}), {0.05F, 77});
        Value* b = graph.both(graph.input({2, 3, 32, 11}), second);
        graph.output(graph.quantize(graph.op("MatMul", {a, b}), {0.31F, 100}));
        EXPECT_EQ(graph.count("QMatMul"), 1);
        graph.expect_same_bits();
        for (const StepReport& step : graph.steps()) EXPECT_FALSE(step.kernel.starts_with("ref")) << step.op;
    }
}

// q, k and v as a transformer makes them: [batch, sequence, heads, features], seen with the heads in front.
Value* heads(QdqGraph& graph, const Shape& shape, const Affine& affine, std::vector<int64_t> perm) {
    return graph.op("Transpose", {graph.both(graph.input(shape, -2, 2), affine)},
                    with("perm", std::move(perm)));
}

TEST(QuantizedAttention, AgreesWithTheScalarKernel) {
    for (const int64_t sequence : {1, 7, 64, 128, 131}) {
        for (const bool masked : {false, true}) {
            SCOPED_TRACE(fmt::format("sequence {}, mask {}", sequence, masked));
            QdqGraph graph;
            const Shape shape{2, sequence, 3, 64};
            Value* q = heads(graph, shape, {0.016F, 128}, {0, 2, 1, 3});
            Value* k = heads(graph, shape, {0.016F, 0, DType::i8}, {0, 2, 1, 3});
            Value* v = heads(graph, shape, {0.016F, 0, DType::i8}, {0, 2, 1, 3});
            std::vector<Value*> inputs{q, k, v};
            if (masked) inputs.push_back(graph.input({2, 1, 1, sequence}, -3, 0));
            Value* y = graph.op("Attention", inputs, with("scale", 0.125F), kKilterDomain);
            graph.output(graph.quantize(
                graph.op("Transpose", {y}, with("perm", std::vector<int64_t>{0, 2, 1, 3})), {0.01F, 120}));
            EXPECT_EQ(graph.count("QAttention"), 1);
            graph.expect_nearly_same();
            for (const StepReport& step : graph.steps())
                EXPECT_FALSE(step.kernel.starts_with("ref")) << step.op;
        }
    }
}

// As files spell it: the probabilities are rounded to bytes between the two products.
TEST(QuantizedAttention, IsRecognisedInItsStandardForm) {
    QdqGraph graph;
    const Shape shape{2, 33, 3, 64};
    Value* q = heads(graph, shape, {0.016F, 128}, {0, 2, 1, 3});
    Value* k = heads(graph, shape, {0.016F, 0, DType::i8}, {0, 2, 3, 1});
    Value* v = heads(graph, shape, {0.016F, 0, DType::i8}, {0, 2, 1, 3});
    Value* scores = graph.op(
        "Div", {graph.op("MatMul", {q, k}), graph.graph().add_constant(Tensor::scalar<float>(8.0F))});
    scores = graph.op("Add", {scores, graph.input({2, 1, 1, 33}, -3, 0)});
    Value* probabilities =
        graph.both(graph.op("Softmax", {scores}, with("axis", int64_t{-1})), {1.0F / 255, 0});
    graph.output(graph.quantize(graph.op("MatMul", {probabilities, v}), {0.01F, 120}));
    EXPECT_EQ(graph.count("QAttention"), 1);
    graph.expect_nearly_same();
    graph.expect_float_meaning(1.0);
}

TEST(QuantizedLayerNorm, WritesFloatsAndIntegersAtOnce) {
    for (const bool floats : {false, true})
        for (const Affine& target : {Affine{0.02F, 128}, Affine{0.02F, -3, DType::i8}}) {
            QdqGraph graph;
            Value* x = graph.input({2, 19, 77});
            Value* y = graph.op("LayerNormalization", {x, graph.bias(77), graph.bias(77)});
            graph.output(graph.quantize(y, target));
            if (floats) graph.output(y);
            EXPECT_EQ(graph.count("QLayerNormalization"), 1);
            EXPECT_EQ(graph.count("QuantizeLinear", ""), 0);
            graph.expect_nearly_same();
            for (const StepReport& step : graph.steps())
                EXPECT_FALSE(step.kernel.starts_with("ref")) << step.op;
        }
}

Value* convolved(QdqGraph& graph, const Shape& shape, const Affine& affine) {
    Shape weights(shape.size(), 1);
    weights[0] = weights[1] = shape[1];
    Value* x = graph.both(graph.input(shape), {0.05F, 77});
    return graph.both(graph.op("Conv", {x, graph.weights(weights, 0)}), affine);
}

TEST(QuantizedArithmetic, GivesTheBitsOfTheScalarKernel) {
    for (const std::string op : {"Add", "Mul"})
        for (const std::string activation : {"", "Relu"})
            for (const Affine& target : {Affine{0.4F, 121}, Affine{0.4F, 0}, Affine{0.4F, 5, DType::i8}})
                for (const Shape& other :
                     {Shape{2, 19, 7, 5}, Shape{2, 19, 1, 1}, Shape{1, 19, 1, 1}, Shape{1, 1, 1, 1}}) {
                    SCOPED_TRACE(op + activation + to_string(other));
                    QdqGraph graph;
                    Value* a = convolved(graph, {2, 19, 7, 5}, {0.11F, 17});
                    Value* b = graph.both(graph.input(other), {0.08F, -5, DType::i8});
                    Value* y = graph.op(op, {a, b});
                    if (!activation.empty()) y = graph.op(activation, {y});
                    graph.output(graph.quantize(y, target));
                    EXPECT_EQ(graph.count("Q" + op), 1);
                    graph.expect_same_bits();
                    graph.expect_float_meaning(1.0);
                    for (const StepReport& step : graph.steps())
                        EXPECT_FALSE(step.kernel.starts_with("ref")) << step.op;
                }
}

TEST(QuantizedPool, AveragesExactly) {
    for (const bool floats : {false, true})
        for (const bool include : {false, true}) {
            QdqGraph graph;
            Value* x = convolved(graph, {2, 300, 9, 7}, {0.11F, 17});
            Attributes attributes = with("kernel_shape", std::vector<int64_t>{3, 2});
            attributes.set("pads", std::vector<int64_t>{1, 1, 0, 1});
            attributes.set("strides", std::vector<int64_t>{2, 1});
            attributes.set("count_include_pad", int64_t{include});
            Value* local = graph.op("AveragePool", {x}, attributes);
            Value* global = graph.op("GlobalAveragePool", {x});
            graph.output(floats ? local : graph.quantize(local, {0.07F, 100}));
            graph.output(floats ? global : graph.quantize(global, {0.03F, 100}));
            EXPECT_EQ(graph.count("QAveragePool"), 1);
            EXPECT_EQ(graph.count("QGlobalAveragePool"), 1);
            graph.expect_same_bits();
            graph.expect_float_meaning(floats ? 1e-5 : 1.0);
            for (const StepReport& step : graph.steps())
                EXPECT_FALSE(step.kernel.starts_with("ref")) << step.op;
        }
}

// What only moves numbers runs on the integers, between convolutions, without a detour over floats.
TEST(QuantizedMovement, StaysInIntegers) {
    const Affine affine{0.11F, 17};
    QdqGraph graph;
    Value* a = convolved(graph, {1, 16, 8, 8}, affine);
    Value* b = convolved(graph, {1, 24, 8, 8}, affine);
    Value* joined = graph.both(graph.op("Concat", {a, b}, with("axis", int64_t{1})), affine);
    Attributes pool = with("kernel_shape", std::vector<int64_t>{3, 3});
    pool.set("strides", std::vector<int64_t>{2, 2});
    pool.set("pads", std::vector<int64_t>{1, 1, 1, 1});
    Value* pooled = graph.both(graph.op("MaxPool", {joined}, pool), affine);
    Value* sliced = graph.both(
        graph.op("Slice", {pooled, graph.graph().add_constant(ints({1})),
                           graph.graph().add_constant(ints({33})), graph.graph().add_constant(ints({1}))}),
        affine);
    Value* y = graph.op("Conv", {sliced, graph.weights({8, 32, 3, 3}, 0)});
    Value* flat = graph.op("Flatten", {graph.both(y, {0.9F, 121})});
    graph.output(
        graph.quantize(graph.op("Transpose", {flat}, with("perm", std::vector<int64_t>{1, 0})), {0.9F, 121}));
    EXPECT_EQ(graph.count("DequantizeLinear", ""), 0);
    EXPECT_EQ(graph.count("QuantizeLinear", ""), 2);  // of the inputs
    graph.expect_same_bits();
    for (const StepReport& step : graph.steps()) EXPECT_FALSE(step.kernel.starts_with("ref")) << step.op;
}

TEST(QuantizedMovement, PadsWithTheZeroPoint) {
    const Affine affine{0.11F, 17};
    QdqGraph graph;
    Value* x = convolved(graph, {1, 16, 8, 8}, affine);
    Value* padded = graph.op("Pad", {x, graph.graph().add_constant(ints({0, 0, 1, 2, 0, 0, 0, 1}))});
    graph.output(graph.quantize(padded, affine));
    EXPECT_EQ(graph.count("DequantizeLinear", ""), 0);
    graph.expect_same_bits();
    graph.expect_float_meaning(1.0);
}

TEST(QuantizedMovement, ChangesTheScaleThroughATable) {
    QdqGraph graph;
    Value* x = convolved(graph, {1, 16, 8, 8}, {0.11F, 17});
    graph.output(graph.quantize(x, {0.2F, 90}));
    graph.output(graph.quantize(graph.op("Sigmoid", {x}), {1.0F / 256, 0}));
    graph.output(graph.quantize(graph.op("HardSwish", {x}), {0.1F, 3, DType::i8}));
    EXPECT_EQ(graph.count("QLookup"), 3);
    graph.expect_same_bits();
    graph.expect_float_meaning(1.0);
    for (const StepReport& step : graph.steps()) EXPECT_FALSE(step.kernel.starts_with("ref")) << step.op;
}

TEST(QuantizedMovement, DropsAReluOfWhatIsNeverNegative) {
    QdqGraph graph;
    Value* x = convolved(graph, {1, 16, 8, 8}, {0.11F, 0});
    Value* y = graph.both(graph.op("Relu", {x}), {0.11F, 0});
    graph.output(graph.quantize(graph.op("Conv", {y, graph.weights({8, 16, 3, 3}, 0)}), {0.9F, 121}));
    EXPECT_EQ(graph.count("QLookup"), 0);
    EXPECT_EQ(graph.count("Relu", ""), 0);
    graph.expect_same_bits();
}

// Chains of random operators with random parameters: every one must give the bits of the scalar kernels.
TEST(QuantizedGraphs, RandomChainsGiveTheSameBits) {
    for (unsigned seed = 1; seed <= 40; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto pick = [&](int count) {
            return static_cast<int>(random() % static_cast<unsigned>(count));
        };
        const auto affine = [&](float scale) {
            const int kind = pick(4);
            if (kind == 0) return Affine{scale, 0};
            if (kind == 1) return Affine{scale, 128};
            if (kind == 2) return Affine{scale, pick(256)};
            return Affine{scale, pick(21) - 10, DType::i8};
        };
        QdqGraph graph(seed);
        int64_t channels = 8 * (1 + pick(5)) + pick(2) * 3;
        const int64_t side = 5 + pick(8);
        Value* x = graph.both(graph.input({1 + pick(2), channels, side, side}, -4, 4, true), affine(0.04F));
        Value* shortcut = nullptr;
        Affine now{};
        for (int depth = 0; depth < 5; ++depth) {
            const int kind = pick(6);
            if (kind == 0 && shortcut != nullptr) {
                x = graph.op("Add", {x, shortcut});
            } else if (kind == 1) {
                Attributes attributes = with("kernel_shape", std::vector<int64_t>{3, 3});
                attributes.set("pads", std::vector<int64_t>{1, 1, 1, 1});
                x = graph.op(pick(2) == 0 ? "MaxPool" : "AveragePool", {x}, attributes);
                if (shortcut != nullptr && pick(2) == 0) shortcut = nullptr;
            } else {
                const bool depthwise = kind == 2;
                const int64_t kernel = depthwise ? 3 : 1 + 2 * pick(2);
                Attributes attributes = with("pads", std::vector<int64_t>(4, kernel / 2));
                attributes.set("group", depthwise ? channels : int64_t{1});
                Value* y = graph.op(
                    "Conv",
                    {x, graph.weights({channels, depthwise ? 1 : channels, kernel, kernel}, 0, 0.005F),
                     graph.bias(channels)},
                    attributes);
                if (shortcut != nullptr && pick(2) == 0) y = graph.op("Add", {y, shortcut});
                if (pick(2) == 0) y = graph.op("Relu", {y});
                x = y;
            }
            now = affine(0.05F + 0.01F * static_cast<float>(pick(10)));
            x = graph.both(x, now);
            if (pick(2) == 0) shortcut = x;
        }
        graph.output(x);
        if (shortcut != nullptr && shortcut != x && pick(2) == 0) graph.output(graph.op("Neg", {shortcut}));
        graph.expect_same_bits();
        for (const StepReport& step : graph.steps()) EXPECT_FALSE(step.kernel.starts_with("ref")) << step.op;
    }
}

}  // namespace kilter::engine::testing::quantized_ops_test
