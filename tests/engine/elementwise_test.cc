// Element-wise operators of the engine against the reference kernels.
#include "engine/testing.h"
#include "kilter/engine/program.h"
#include "ops/op.h"

namespace kilter::engine::testing::elementwise_test {

struct Broadcast {
    Shape a, b;
};

std::vector<Broadcast> broadcasts() {
    return {{{3, 17, 33}, {3, 17, 33}},
            {{3, 17, 33}, {33}},
            {{33}, {3, 17, 33}},
            {{3, 17, 33}, {17, 1}},
            {{3, 1, 33}, {1, 17, 1}},
            {{}, {2, 5}},
            {{2, 5}, {}},
            {{1, 1}, {1}},
            {{2, 1, 3, 1}, {5, 1, 7}},
            {{1, 128, 200}, {1, 128, 1}},
            {{4, 1, 65}, {4, 300, 65}}};
}

TEST(EngineUnary, AgreesWithTheReference) {
    for (const char* op : {"Erf",    "Log",       "Reciprocal",  "Round",     "Floor",    "Ceil",
                           "Sign",   "Clip",      "Softsign",    "Celu",      "Selu",     "ThresholdedRelu",
                           "Shrink", "Sin",       "Cos",         "Tan",       "Atan",     "Sinh",
                           "Cosh",   "Asinh",     "Relu",        "LeakyRelu", "Sigmoid",  "Tanh",
                           "Gelu",   "HardSwish", "HardSigmoid", "Elu",       "Softplus", "Mish",
                           "Exp",    "Abs",       "Sqrt",        "Neg"}) {
        SCOPED_TRACE(op);
        const bool positive = std::string_view(op) == "Log" || std::string_view(op) == "Sqrt";
        for (const Shape& shape : odd_shapes())
            OpTest(op).input(random(DType::f32, shape, 1, positive ? 0.001 : -5, 5)).check();
        if (positive) continue;
        OpTest(op).transposed(random(DType::f32, {2, 3, 17}, 1)).check();
        OpTest(op).sliced(random(DType::f32, {2, 3, 17}, 1)).check();
        // Close to a pole the rounding of the convolution would decide.
        if (std::string_view(op) == "Tan" || std::string_view(op) == "Reciprocal") continue;
        OpTest(op).convolved(random(DType::f32, {2, 17, 5, 7}, 1)).check();
    }
    for (const char* op : {"Asin", "Acos", "Atanh"})
        OpTest(op).input(random(DType::f32, {5, 33}, 1, -0.99, 0.99)).check();
    OpTest("Acosh").input(random(DType::f32, {5, 33}, 1, 1, 9)).check();
}

TEST(EngineUnary, KnowsSpecialNumbers) {
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Tensor x = Tensor::of<float>(
        {12}, {0.0F, -0.0F, 1.0F, -1.0F, inf, -inf, nan, 1e-40F, 1e30F, 2.5F, -0.5F, 1e-20F});
    for (const char* op : {"Log", "Erf", "Reciprocal", "Round", "Sign", "Relu", "LeakyRelu", "Sigmoid",
                           "Tanh", "Exp", "Elu", "Celu", "Selu", "Softplus", "HardSigmoid", "Abs", "Neg"}) {
        SCOPED_TRACE(op);
        OpTest(op).input(x).tolerance(2e-7).check();
    }
    OpTest("Clip").input(x).constant(Tensor::scalar(0.0F)).constant(Tensor::scalar(6.0F)).check();
    OpTest("Clip").input(x).absent().constant(Tensor::scalar(6.0F)).check();  // leaves minus infinity
    OpTest("Erfc", std::string(kKilterDomain)).input(x).check();
}

// Digit by digit, where a function is small: near zero and far out.
TEST(EngineUnary, KeepsItsDigitsAtTheTails) {
    struct Case {
        const char* op;
        const char* domain;
        double (*function)(double);
    };
    const Case cases[] = {
        {"Softplus", "", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }},
        {"Mish", "",
         [](double x) { return x * std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)))); }},
        {"Elu", "", [](double x) { return x < 0 ? std::expm1(x) : x; }},
        {"Exp", "", [](double x) { return std::exp(x); }},
        {"Sigmoid", "", [](double x) { return 1 / (1 + std::exp(-x)); }},
        {"Tanh", "", [](double x) { return std::tanh(x); }},
        {"Erfc", "kilter", [](double x) { return std::erfc(x); }},
    };
    std::vector<float> numbers;
    for (double size = 1e-30; size < 85; size *= 1.03)
        for (const double sign : {-1.0, 1.0}) numbers.push_back(static_cast<float>(sign * size));
    const Tensor x = Tensor::of<float>({static_cast<int64_t>(numbers.size())}, numbers);
    for (const Case& c : cases) {
        Graph graph;
        graph.add_output(graph.add(c.op, {graph.add_input("x", ValueType::of(x))}, {}, {}, c.domain), "y");
        Stage stage(std::move(graph), {}, std::make_shared<WeightStore>());
        const Tensor y = stage.run({x})[0];
        for (size_t i = 0; i < numbers.size(); ++i) {
            const double wanted = c.function(numbers[i]);
            if (std::fabs(wanted) < 1.2e-38) continue;
            ASSERT_NEAR(y.as<float>()[i], wanted, 2e-6 * std::fabs(wanted)) << c.op << " of " << numbers[i];
        }
    }
}

TEST(EngineUnary, SoftplusBehindAProductKeepsItsDigits) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 4}});
    Value* product =
        graph.add("MatMul", {x, graph.add_constant(Tensor::of<float>({4, 1}, {-5, -5, -5, -5}))});
    graph.add_output(graph.add("Softplus", {product}), "y");
    Model model;
    model.graph = std::move(graph);
    model.opsets = {{"", kCanonicalOpset}};
    const Tensor y = Program(std::move(model)).run({Tensor::of<float>({1, 4}, {1, 1, 1, 1})})[0];
    EXPECT_NEAR(y.as<float>()[0], std::exp(-20.0), 1e-6 * std::exp(-20.0));
}

TEST(EngineUnary, ErfIsExactToFloat) {
    Tensor x(DType::f32, {100001});
    for (int64_t i = 0; i < x.size(); ++i)
        x.as_mutable<float>()[static_cast<size_t>(i)] = static_cast<float>(i - 50000) * 1e-4F;
    OpTest("Erf").input(x).tolerance(2e-7).check();
}

TEST(EngineUnary, IntegersAndBooleans) {
    for (const DType dtype : {DType::i64, DType::i32})
        for (const char* op : {"Abs", "Neg", "Sign"})
            OpTest(op).input(random(dtype, {3, 17}, 1, -9, 9)).check();
    OpTest("Not").input(random(DType::boolean, {3, 17}, 1)).check();
}

TEST(EngineBinary, Broadcasts) {
    for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu", "Mod"}) {
        SCOPED_TRACE(op);
        for (const Broadcast& shapes : broadcasts()) {
            if (std::string_view(op) == "PRelu" && broadcast(shapes.a, shapes.b) != shapes.a) continue;
            const double low = std::string_view(op) == "Pow" ? 0.1 : -2;
            OpTest test(op);
            test.input(random(DType::f32, shapes.a, 1, low)).input(random(DType::f32, shapes.b, 2));
            if (std::string_view(op) == "Mod") test.attribute("fmod", int64_t{1});
            test.check();
        }
    }
}

TEST(EngineBinary, Integers) {
    for (const DType dtype : {DType::i64, DType::i32})
        for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Mod"}) {
            SCOPED_TRACE(op);
            for (const Broadcast& shapes : broadcasts())
                OpTest(op)
                    .input(random(dtype, shapes.a, 1, -9, 9))
                    .input(random(dtype, shapes.b, 2, -4, 4))
                    .check();
        }
}

TEST(EngineBinary, ViewsAndLayouts) {
    const Tensor x = random(DType::f32, {2, 17, 5, 7}, 1);
    for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "PRelu"}) {
        SCOPED_TRACE(op);
        const Tensor channel = random(DType::f32, {17, 1, 1}, 2);
        OpTest(op).transposed(x).constant(channel).check();
        OpTest(op).sliced(x).constant(channel).check();
        OpTest(op).convolved(x).constant(channel).check();
        OpTest(op).convolved(x).input(channel).check();
        OpTest(op).convolved(x).input(random(DType::f32, {5, 7}, 2)).check();
        OpTest(op).convolved(x).input(random(DType::f32, {2, 1, 5, 1}, 2)).check();
        OpTest(op).convolved(x).constant(Tensor::scalar(0.5F)).check();
        if (std::string_view(op) == "PRelu") continue;
        OpTest(op).sliced(x).transposed(x).check();
        OpTest(op).convolved(x).transposed(x).check();
        if (std::string_view(op) == "Div") continue;  // by numbers close to zero
        OpTest(op).convolved(x).convolved(x).check();
        OpTest(op).input(channel).convolved(x).check();
    }
}

TEST(EngineBinary, PowOfConstantExponents) {
    for (const float exponent : {2.0F, 0.5F, 3.0F, -1.0F, 1.7F})
        OpTest("Pow").input(random(DType::f32, {3, 33}, 1, 0.1)).constant(Tensor::scalar(exponent)).check();
    OpTest("Pow").input(random(DType::f32, {3, 33}, 1)).constant(Tensor::scalar<int64_t>(3)).check();
}

TEST(EngineVariadic, AnyNumberOfInputs) {
    for (const char* op : {"Sum", "Mean", "Max", "Min"}) {
        SCOPED_TRACE(op);
        OpTest(op).input(random(DType::f32, {3, 17}, 1)).check();
        OpTest(op).input(random(DType::f32, {3, 17}, 1)).input(random(DType::f32, {3, 17}, 2)).check();
        OpTest(op)
            .input(random(DType::f32, {3, 1}, 1))
            .input(random(DType::f32, {1, 17}, 2))
            .input(random(DType::f32, {2, 1, 1}, 3))
            .check();
        OpTest(op)
            .sliced(random(DType::f32, {3, 17}, 1))
            .transposed(random(DType::f32, {3, 17}, 2))
            .input(random(DType::f32, {17}, 3))
            .constant(random(DType::f32, {3, 17}, 4))
            .check();
    }
}

TEST(EngineCast, EveryPair) {
    const std::vector<std::pair<DType, int64_t>> types{
        {DType::f32, 1}, {DType::u8, 2},      {DType::i8, 3},   {DType::i32, 6},
        {DType::i64, 7}, {DType::boolean, 9}, {DType::f16, 10}, {DType::bf16, 16}};
    for (const auto& [from, ignored] : types)
        for (const auto& [to, code] : types) {
            SCOPED_TRACE(std::string(name(from)) + " to " + std::string(name(to)));
            for (const Shape& shape : {Shape{1}, Shape{3, 17}, Shape{3, 65, 129}})
                OpTest("Cast").input(random(from, shape, 1, 0, 99)).attribute("to", code).check();
            OpTest("Cast").input(random(from, {3, 17}, 1, -9, 9)).attribute("to", code).check();
        }
    for (const int64_t code : {2, 3, 6, 7})
        OpTest("Cast").input(random(DType::f32, {333}, 1, -1e20, 1e20)).attribute("to", code).check();
}

TEST(EngineComparison, Broadcasts) {
    for (const char* op : {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"})
        for (const DType dtype : {DType::f32, DType::i64, DType::i32}) {
            SCOPED_TRACE(op);
            for (const Broadcast& shapes : broadcasts())
                OpTest(op)
                    .input(random(dtype, shapes.a, 1, 0, 4))
                    .input(random(dtype, shapes.b, 2, 0, 4))
                    .check();
        }
    for (const char* op : {"And", "Or", "Xor", "Equal"})
        for (const Broadcast& shapes : broadcasts())
            OpTest(op)
                .input(random(DType::boolean, shapes.a, 1))
                .input(random(DType::boolean, shapes.b, 2))
                .check();
}

TEST(EngineWhere, Broadcasts) {
    for (const DType dtype : {DType::f32, DType::i64, DType::i32, DType::boolean, DType::f16})
        for (const Broadcast& shapes : broadcasts()) {
            OpTest("Where")
                .input(random(DType::boolean, shapes.a, 1))
                .input(random(dtype, shapes.b, 2))
                .input(random(dtype, shapes.a, 3))
                .check();
            OpTest("Where")
                .input(random(DType::boolean, shapes.b, 1))
                .input(random(dtype, shapes.a, 2))
                .input(random(dtype, {1}, 3))
                .check();
        }
    OpTest("Where")
        .input(random(DType::boolean, {3, 17}, 1))
        .transposed(random(DType::f32, {3, 17}, 2))
        .sliced(random(DType::f32, {3, 17}, 3))
        .check();
}

TEST(EngineClip, BoundsAsInputs) {
    OpTest("Clip")
        .input(random(DType::f32, {3, 17}, 1))
        .constant(Tensor::scalar(-0.5F))
        .constant(Tensor::scalar(0.7F))
        .check();
    OpTest("Clip").input(random(DType::f32, {3, 17}, 1)).absent().constant(Tensor::scalar(0.7F)).check();
    OpTest("Clip").input(random(DType::f32, {3, 17}, 1)).constant(Tensor::scalar(-0.5F)).check();
}

}  // namespace kilter::engine::testing::elementwise_test
