// Pools, normalizations, softmax, products and recurrent networks of the engine against the reference kernels.
#include "engine/testing.h"

namespace kilter::engine::testing::nn_test {

using Ints = std::vector<int64_t>;

TEST(EnginePool, OddWindows) {
    struct Case {
        Ints kernel, strides, pads;
        int64_t ceil = 0;
    };
    const std::vector<Case> cases{{{3, 3}, {2, 2}, {1, 1, 1, 1}},
                                  {{2, 2}, {2, 2}, {0, 0, 0, 0}},
                                  {{3, 2}, {1, 2}, {1, 0, 0, 1}},
                                  {{3, 3}, {2, 2}, {0, 0, 0, 0}, 1},
                                  {{5, 5}, {3, 3}, {2, 2, 2, 2}, 1}};
    for (const char* op : {"MaxPool", "AveragePool"})
        for (const Case& item : cases)
            for (const int64_t channels : {1, 3, 17, 32}) {
                SCOPED_TRACE(op);
                const Tensor x = random(DType::f32, {2, channels, 13, 17}, 1);
                for (const int64_t include : {0, 1}) {
                    if (include == 1 && (item.ceil == 1 || std::string_view(op) == "MaxPool")) continue;
                    const auto add = [&](OpTest test) {
                        test.attribute("kernel_shape", item.kernel)
                            .attribute("strides", item.strides)
                            .attribute("pads", item.pads)
                            .attribute("ceil_mode", item.ceil);
                        if (include == 1) test.attribute("count_include_pad", int64_t{1});
                        test.check();
                    };
                    add(std::move(OpTest(op).input(x)));
                    add(std::move(OpTest(op).convolved(x)));
                    add(std::move(OpTest(op).transposed(x)));
                }
            }
    OpTest("MaxPool")
        .input(random(DType::f32, {2, 5, 33}, 1))
        .attribute("kernel_shape", Ints{3})
        .attribute("dilations", Ints{2})
        .any_kernel()
        .check();
    OpTest("MaxPool")
        .input(random(DType::f32, {1, 5, 9, 9, 9}, 1))
        .attribute("kernel_shape", Ints{3, 3, 3})
        .attribute("strides", Ints{2, 2, 2})
        .check();
    OpTest("AveragePool")
        .input(random(DType::f32, {1, 5, 9, 9}, 1))
        .attribute("kernel_shape", Ints{2, 2})
        .attribute("auto_pad", std::string("SAME_UPPER"))
        .check();
}

TEST(EnginePool, WholePlanes) {
    for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"})
        for (const Shape& shape : odd_shapes()) {
            OpTest(op).input(random(DType::f32, shape, 1)).check();
            OpTest(op).convolved(random(DType::f32, shape, 1)).check();
            OpTest(op).transposed(random(DType::f32, shape, 1)).check();
        }
    OpTest("GlobalAveragePool").input(random(DType::f32, {2, 3, 17}, 1)).check();
}

TEST(EngineNormalization, PerChannel) {
    for (const Shape& shape : {Shape{2, 17, 5, 7}, Shape{2, 32, 6, 7}, Shape{1, 3, 33, 9}, Shape{3, 33, 17},
                               Shape{2, 4, 3, 5, 3}}) {
        const int64_t c = shape[1];
        const auto vectors = [&](OpTest& test, int count) -> OpTest& {
            for (int i = 0; i < count; ++i)
                test.constant(random(DType::f32, {c}, static_cast<unsigned>(10 + i), i == 3 ? 0.5 : -1,
                                     i == 3 ? 2 : 1));
            return test;
        };
        const Tensor x = random(DType::f32, shape, 1);
        for (const int form : {0, 1, 2}) {
            for (const char* op : {"BatchNormalization", "InstanceNormalization"}) {
                SCOPED_TRACE(std::string(op) + to_string(shape));
                OpTest test(op);
                if (form == 0) test.input(x);
                if (form == 1) test.convolved(x);
                if (form == 2) test.transposed(x);
                vectors(test, std::string_view(op) == "BatchNormalization" ? 4 : 2).check();
            }
        }
        OpTest groups("GroupNormalization");
        vectors(groups.input(x), 2).attribute("num_groups", c % 4 == 0 ? int64_t{2} : int64_t{1}).check();
    }
    OpTest two("BatchNormalization");
    two.input(random(DType::f32, {5, 17}, 1));
    for (unsigned i = 0; i < 4; ++i) two.constant(random(DType::f32, {17}, i, 0.5, 2));
    two.check();
}

TEST(EngineNormalization, PerRow) {
    for (const Shape& shape : {Shape{2, 17, 33}, Shape{5, 1}, Shape{1, 3, 5, 768}}) {
        const Shape last{shape.back()};
        for (const int form : {0, 1, 2}) {
            const auto start = [&](const char* op) {
                OpTest test(op);
                const Tensor x = random(DType::f32, shape, 1);
                if (form == 0) test.input(x);
                if (form == 1) test.sliced(x);
                if (form == 2) test.transposed(x);
                return test;
            };
            start("LayerNormalization")
                .constant(random(DType::f32, last, 2))
                .constant(random(DType::f32, last, 3))
                .check();
            start("LayerNormalization").constant(random(DType::f32, last, 2)).check();
            start("RMSNormalization").constant(random(DType::f32, last, 2)).check();
            for (const int64_t p : {1, 2}) start("LpNormalization").attribute("p", p).check();
            start("LpNormalization").attribute("axis", int64_t{0}).check();
        }
    }
    OpTest("LayerNormalization")
        .input(random(DType::f32, {3, 5, 7}, 1))
        .constant(random(DType::f32, {5, 7}, 2))
        .attribute("axis", int64_t{1})
        .check();
    // One factor per row has as many elements as one per column.
    for (const char* op : {"LayerNormalization", "RMSNormalization"})
        OpTest(op)
            .input(random(DType::f32, {7, 7}, 1))
            .constant(random(DType::f32, {7, 1}, 2))
            .any_kernel()
            .check();
    OpTest("MeanVarianceNormalization").input(random(DType::f32, {3, 5, 7, 9}, 1)).check();
    OpTest("MeanVarianceNormalization")
        .input(random(DType::f32, {3, 5, 7, 9}, 1))
        .attribute("axes", Ints{1, 2})
        .check();
    for (const int64_t size : {1, 3, 4, 5}) {
        OpTest("LRN")
            .input(random(DType::f32, {2, 17, 5, 7}, 1))
            .attribute("size", size)
            .attribute("alpha", 0.5F)
            .check();
        OpTest("LRN").convolved(random(DType::f32, {2, 17, 5, 7}, 1)).attribute("size", size).check();
        OpTest("LRN")
            .input(random(DType::f32, {1, 32, 9, 9}, 1))
            .attribute("size", size)
            .attribute("bias", 2.0F)
            .check();
    }
}

TEST(EngineSoftmax, AnyAxis) {
    for (const char* op : {"Softmax", "LogSoftmax"})
        for (const int64_t axis : {0, 1, 2, -1}) {
            SCOPED_TRACE(std::string(op) + std::to_string(axis));
            for (const Shape& shape : odd_shapes()) {
                OpTest(op).input(random(DType::f32, shape, 1)).attribute("axis", axis).check();
                OpTest(op).transposed(random(DType::f32, shape, 1)).attribute("axis", axis).check();
                OpTest(op).convolved(random(DType::f32, shape, 1)).attribute("axis", axis).check();
            }
        }
}

TEST(EngineGemm, FactorsAndBroadcasts) {
    for (const int64_t trans_a : {0, 1})
        for (const int64_t trans_b : {0, 1})
            for (const float alpha : {1.0F, 0.3F})
                for (const float beta : {1.0F, -0.7F, 0.0F})
                    for (const Shape& c :
                         {Shape{}, Shape{33}, Shape{1}, Shape{17, 1}, Shape{17, 33}, Shape{1, 33}}) {
                        const Tensor a = random(DType::f32, trans_a != 0 ? Shape{5, 17} : Shape{17, 5}, 1);
                        const Tensor b = random(DType::f32, trans_b != 0 ? Shape{33, 5} : Shape{5, 33}, 2);
                        const auto add = [&](OpTest& test) {
                            test.input(random(DType::f32, c, 3))
                                .attribute("transA", trans_a)
                                .attribute("transB", trans_b)
                                .attribute("alpha", alpha)
                                .attribute("beta", beta)
                                .check();
                        };
                        OpTest constant("Gemm");
                        add(constant.input(a).constant(b));
                        OpTest computed("Gemm");
                        add(computed.input(a).input(b));
                    }
    OpTest("Gemm").transposed(random(DType::f32, {17, 5}, 1)).input(random(DType::f32, {5, 3}, 2)).check();
}

TEST(EngineMatMul, EveryRank) {
    const std::vector<std::pair<Shape, Shape>> shapes{{{5}, {5}},
                                                      {{5}, {5, 3}},
                                                      {{3, 5}, {5}},
                                                      {{5}, {2, 5, 3}},
                                                      {{2, 3, 5}, {5}},
                                                      {{3, 5}, {5, 7}},
                                                      {{2, 3, 5}, {5, 7}},
                                                      {{3, 5}, {2, 5, 7}},
                                                      {{2, 1, 3, 5}, {4, 5, 7}},
                                                      {{4, 2, 17, 33}, {4, 2, 33, 17}},
                                                      {{1, 1}, {1, 1}},
                                                      {{1, 33}, {33, 1}},
                                                      {{7, 12, 16, 64}, {7, 12, 64, 16}}};
    for (const auto& [a, b] : shapes) {
        SCOPED_TRACE(to_string(a) + " " + to_string(b));
        OpTest("MatMul").input(random(DType::f32, a, 1)).input(random(DType::f32, b, 2)).check();
        OpTest("MatMul").input(random(DType::f32, a, 1)).constant(random(DType::f32, b, 2)).check();
        OpTest("MatMul").transposed(random(DType::f32, a, 1)).transposed(random(DType::f32, b, 2)).check();
        OpTest("MatMul").sliced(random(DType::f32, a, 1)).sliced(random(DType::f32, b, 2)).check();
    }
}

TEST(EngineRecurrent, DirectionsLayoutsAndStates) {
    struct Cell {
        const char* op;
        int64_t gates;
        int64_t linear_before_reset = 0;
    };
    for (const Cell& cell : {Cell{"LSTM", 4}, Cell{"GRU", 3}, Cell{"GRU", 3, 1}, Cell{"RNN", 1}})
        for (const char* direction : {"forward", "reverse", "bidirectional"})
            for (const int64_t layout : {0, 1})
                for (const bool states : {false, true})
                    for (const bool bias : {false, true}) {
                        SCOPED_TRACE(std::string(cell.op) + " " + direction + " layout " +
                                     std::to_string(layout));
                        const int64_t directions = std::string_view(direction) == "bidirectional" ? 2 : 1;
                        const int64_t hidden = 9;
                        const bool lstm = std::string_view(cell.op) == "LSTM";
                        OpTest test(cell.op);
                        test.input(random(DType::f32, layout == 0 ? Shape{7, 3, 5} : Shape{3, 7, 5}, 1));
                        test.constant(random(DType::f32, {directions, cell.gates * hidden, 5}, 2, -1, 1));
                        test.constant(
                            random(DType::f32, {directions, cell.gates * hidden, hidden}, 3, -1, 1));
                        if (bias)
                            test.constant(
                                random(DType::f32, {directions, 2 * cell.gates * hidden}, 4, -1, 1));
                        else
                            test.absent();
                        test.absent();
                        if (states) {
                            const Shape state =
                                layout == 0 ? Shape{directions, 3, hidden} : Shape{3, directions, hidden};
                            test.input(random(DType::f32, state, 5, -1, 1));
                            if (lstm) test.input(random(DType::f32, state, 6, -1, 1));
                        }
                        test.attribute("direction", std::string(direction))
                            .attribute("layout", layout)
                            .attribute("hidden_size", hidden);
                        if (cell.linear_before_reset != 0) test.attribute("linear_before_reset", int64_t{1});
                        // oneDNN calls its GRU, which is made of products, a reference.
                        if (std::string_view(cell.op) == "GRU") test.any_kernel();
                        test.outputs(lstm ? 3 : 2).check();
                    }
}

}  // namespace kilter::engine::testing::nn_test
