// Element-wise operators of the engine against the reference kernels.
#include "engine/testing.h"
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
    for (const char* op : {"Erf",
                           "Log",
                           "Reciprocal",
                           "Round",
                           "Floor",
                           "Ceil",
                           "Sign",
                           "Softsign",
                           "Celu",
                           "Selu",
                           "ThresholdedRelu",
                           "Shrink",
                           "Sin",
                           "Cos",
                           "Tan",
                           "Atan",
                           "Sinh",
                           "Cosh",
                           "Asinh",
                           "Relu",
                           "LeakyRelu",
                           "Sigmoid",
                           "Tanh",
                           "Gelu",
                           "HardSwish",
                           "HardSigmoid",
                           "Elu",
                           "Softplus",
                           "Mish",
                           "Exp",
                           "Abs",
                           "Sqrt",
                           "Neg"}) {
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
    for (const char* op : {"Log", "Erf", "Reciprocal", "Round", "Sign"}) {
        SCOPED_TRACE(op);
        OpTest(op).input(x).tolerance(2e-7).check();
    }
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
