// Reductions, arg-max, top-k and cumulative sums of the engine against the reference kernels.
#include "engine/testing.h"

namespace kilter::engine::testing::reduce_test {

std::vector<std::vector<int64_t>> axes_of_rank_4() {
    return {{0},    {1},    {2},    {3},    {-1},      {0, 1},    {2, 3},
            {1, 3}, {0, 2}, {0, 3}, {1, 2}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3}};
}

TEST(EngineReduce, AnyAxes) {
    for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                           "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"}) {
        for (const auto& axes : axes_of_rank_4()) {
            SCOPED_TRACE(std::string(op) + " " + to_string(axes));
            for (const int64_t keep : {0, 1}) {
                for (const Shape& shape : {Shape{2, 17, 3, 5}, Shape{1, 3, 17, 33}, Shape{3, 1, 5, 200}})
                    OpTest(op)
                        .input(random(DType::f32, shape, 1))
                        .constant(ints(axes))
                        .attribute("keepdims", keep)
                        .check();
            }
            OpTest(op).convolved(random(DType::f32, {2, 17, 3, 5}, 1)).constant(ints(axes)).check();
            OpTest(op).transposed(random(DType::f32, {2, 3, 3, 5}, 1)).constant(ints(axes)).check();
        }
    }
}

TEST(EngineReduce, LogSumOfPositiveNumbers) {
    OpTest("ReduceLogSum").input(random(DType::f32, {3, 17}, 1, 0.1, 2)).constant(ints({1})).check();
    OpTest("ReduceLogSumExp").input(random(DType::f32, {3, 17}, 1, -200, 200)).constant(ints({0})).check();
}

TEST(EngineReduce, AllAxesOrNone) {
    OpTest("ReduceSum").input(random(DType::f32, {3, 17, 5}, 1)).check();
    OpTest("ReduceMean").input(random(DType::f32, {3, 17, 5}, 1)).attribute("keepdims", int64_t{0}).check();
    OpTest("ReduceSumSquare")
        .input(random(DType::f32, {3, 17}, 1))
        .attribute("noop_with_empty_axes", int64_t{1})
        .check();
}

TEST(EngineReduce, LongRowsStayExact) {
    OpTest("ReduceMean")
        .input(random(DType::f32, {3, 100000}, 1, 0, 1))
        .constant(ints({1}))
        .tolerance(1e-6)
        .check();
    OpTest("ReduceSum")
        .input(random(DType::f32, {100000, 3}, 1, 0, 1))
        .constant(ints({0}))
        .tolerance(1e-6)
        .check();
}

TEST(EngineReduce, NanWins) {
    Tensor x = random(DType::f32, {3, 40}, 1);
    x.as_mutable<float>()[50] = std::numeric_limits<float>::quiet_NaN();
    for (const char* op : {"ReduceMax", "ReduceMin"})
        for (const int64_t axis : {0, 1}) OpTest(op).input(x).constant(ints({axis})).check();
    for (const char* op : {"ArgMax", "ArgMin"})
        for (const int64_t axis : {0, 1}) OpTest(op).input(x).attribute("axis", axis).check();
    for (const int64_t largest : {0, 1})
        OpTest("TopK").input(x).constant(ints({7})).attribute("largest", largest).outputs(2).check();
}

TEST(EngineReduce, Integers) {
    for (const DType dtype : {DType::i64, DType::i32})
        for (const char* op : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"})
            for (const auto& axes : axes_of_rank_4())
                OpTest(op).input(random(dtype, {2, 3, 5, 7}, 1, -99, 99)).constant(ints(axes)).check();
}

TEST(EngineArgMax, AnyAxis) {
    for (const char* op : {"ArgMax", "ArgMin"})
        for (const DType dtype : {DType::f32, DType::i64, DType::i32})
            for (const int64_t axis : {0, 1, 2, -1})
                for (const int64_t last : {0, 1}) {
                    SCOPED_TRACE(std::string(op) + " " + std::to_string(axis));
                    // Few different numbers: many are equal.
                    OpTest(op)
                        .input(random(DType::i32, {3, 17, 70}, 1, 0, 6).converted(dtype))
                        .attribute("axis", axis)
                        .attribute("select_last_index", last)
                        .attribute("keepdims", last)
                        .check();
                }
    OpTest("ArgMax").convolved(random(DType::f32, {2, 21, 9, 7}, 1)).attribute("axis", int64_t{1}).check();
}

TEST(EngineTopK, EqualNumbersKeepTheirOrder) {
    for (const int64_t axis : {0, 1, -1})
        for (const int64_t largest : {0, 1})
            for (const int64_t k : {1, 2, 3})
                OpTest("TopK")
                    .input(random(DType::i32, {3, 5, 33}, 1, -3, 3).converted(DType::f32))
                    .constant(ints({k}))
                    .attribute("axis", axis)
                    .attribute("largest", largest)
                    .outputs(2)
                    .check();
    OpTest("TopK").input(random(DType::f32, {2, 8400}, 1)).constant(ints({300})).outputs(2).check();
    OpTest("TopK").input(random(DType::f32, {2, 33}, 1)).constant(ints({33})).outputs(2).check();
}

TEST(EngineCumSum, AnyAxis) {
    for (const DType dtype : {DType::f32, DType::i64, DType::i32})
        for (const int64_t axis : {0, 1, -1})
            for (const int64_t flags : {0, 1, 2, 3})
                OpTest("CumSum")
                    .input(random(dtype, {3, 17, 70}, 1, -9, 9))
                    .constant(Tensor::scalar(axis))
                    .attribute("exclusive", flags & 1)
                    .attribute("reverse", flags >> 1)
                    .check();
}

}  // namespace kilter::engine::testing::reduce_test
