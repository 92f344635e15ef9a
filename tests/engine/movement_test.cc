// Operators that only move elements, against the reference kernels.
#include <numeric>

#include "engine/testing.h"
#include "kilter/base/error.h"

namespace kilter::engine::testing::movement_test {

const std::vector<DType> kTypes{DType::f32, DType::i64, DType::boolean, DType::f16, DType::i32, DType::u8};

TEST(EngineTranspose, EveryOrder) {
    for (const DType dtype : kTypes) {
        std::vector<int64_t> order{0, 1, 2, 3};
        do {
            SCOPED_TRACE(std::string(name(dtype)) + " " + to_string(order));
            for (const Shape& shape : {Shape{2, 3, 17, 33}, Shape{1, 17, 1, 5}, Shape{2, 16, 8, 32}})
                OpTest("Transpose").input(random(dtype, shape, 1)).attribute("perm", order).check();
        } while (std::next_permutation(order.begin(), order.end()));
        OpTest("Transpose").input(random(dtype, {3, 5, 7}, 1)).check();
        OpTest("Transpose").sliced(random(dtype, {3, 5, 7}, 1)).check();
        OpTest("Transpose").transposed(random(dtype, {3, 5, 7}, 1)).check();
    }
    OpTest("Transpose")
        .convolved(random(DType::f32, {2, 17, 5, 7}, 1))
        .attribute("perm", std::vector<int64_t>{0, 2, 3, 1})
        .check();
    OpTest("Transpose").input(random(DType::f32, {3, 5, 7}, 1)).then("Relu").check();
    OpTest("Transpose")
        .input(random(DType::f32, {2, 3, 4, 5, 6, 7}, 1))
        .attribute("perm", std::vector<int64_t>{5, 0, 4, 1, 3, 2})
        .check();
}

TEST(EngineSlice, StartsEndsAndSteps) {
    struct Case {
        std::vector<int64_t> starts, ends, axes, steps;
    };
    const std::vector<Case> cases{
        {{1, 0}, {2, 5}, {0, 2}, {1, 1}}, {{-3, 2}, {99, -1}, {1, 2}, {2, 3}},
        {{-1}, {-99}, {2}, {-1}},         {{4, 9}, {0, 1}, {1, 2}, {-2, -3}},
        {{99}, {-99}, {1}, {-3}},         {{0, 0, 0}, {9, 9, 9}, {0, 1, 2}, {1, 1, 1}}};
    for (const DType dtype : kTypes)
        for (const Case& item : cases) {
            const auto add = [&](OpTest& test) -> OpTest& {
                return test.constant(ints(item.starts))
                    .constant(ints(item.ends))
                    .constant(ints(item.axes))
                    .constant(ints(item.steps));
            };
            OpTest plain("Slice");
            add(plain.input(random(dtype, {3, 7, 17}, 1))).check();
            OpTest then("Slice");
            add(then.transposed(random(dtype, {3, 7, 17}, 1))).check();
            OpTest convolved("Slice");
            if (dtype == DType::f32) add(convolved.convolved(random(dtype, {3, 7, 17}, 1))).check();
        }
}

TEST(EngineSplit, PartsOfAnyAxis) {
    for (const DType dtype : kTypes)
        for (const int64_t axis : {0, 1, -1}) {
            OpTest("Split")
                .input(random(dtype, {6, 6, 6}, 1))
                .constant(ints({1, 3, 2}))
                .attribute("axis", axis)
                .outputs(3)
                .check();
            OpTest("Split")
                .input(random(dtype, {6, 6, 6}, 1))
                .constant(ints({1, 3, 2}))
                .attribute("axis", axis)
                .outputs(3)
                .then("Identity")
                .check();
        }
    OpTest("Split")
        .convolved(random(DType::f32, {2, 34, 5, 7}, 1))
        .constant(ints({17, 17}))
        .attribute("axis", int64_t{1})
        .outputs(2)
        .then("Relu")
        .check();
}

TEST(EngineExpand, AndTile) {
    for (const DType dtype : kTypes) {
        OpTest("Expand").input(random(dtype, {3, 1, 5}, 1)).constant(ints({2, 1, 7, 1})).check();
        OpTest("Expand").input(random(dtype, {1}, 1)).constant(ints({4, 33})).check();
        OpTest("Expand").input(random(dtype, {}, 1)).constant(ints({4, 3})).check();
        OpTest("Expand").transposed(random(dtype, {3, 1, 5}, 1)).constant(ints({3, 17, 5})).check();
        OpTest("Expand").input(random(dtype, {3, 5}, 1)).constant(ints({1, 1})).check();
        OpTest("Tile").input(random(dtype, {3, 1, 5}, 1)).constant(ints({2, 7, 3})).check();
        OpTest("Tile").sliced(random(dtype, {3, 2, 5}, 1)).constant(ints({1, 2, 1})).check();
    }
}

TEST(EngineDepthToSpace, BothModes) {
    for (const DType dtype : {DType::f32, DType::i64})
        for (const char* mode : {"DCR", "CRD"}) {
            OpTest("DepthToSpace")
                .input(random(dtype, {2, 27, 5, 7}, 1))
                .attribute("blocksize", int64_t{3})
                .attribute("mode", std::string(mode))
                .check();
            OpTest("DepthToSpace")
                .transposed(random(dtype, {2, 12, 5, 7}, 1))
                .attribute("blocksize", int64_t{2})
                .attribute("mode", std::string(mode))
                .check();
        }
    OpTest("DepthToSpace")
        .convolved(random(DType::f32, {2, 12, 5, 7}, 1))
        .attribute("blocksize", int64_t{2})
        .check();
    OpTest("SpaceToDepth")
        .input(random(DType::f32, {2, 3, 6, 10}, 1))
        .attribute("blocksize", int64_t{2})
        .check();
    OpTest("SpaceToDepth")
        .convolved(random(DType::f32, {2, 17, 6, 10}, 1))
        .attribute("blocksize", int64_t{2})
        .check();
}

TEST(EnginePad, EveryMode) {
    for (const DType dtype : kTypes)
        for (const char* mode : {"constant", "edge", "reflect", "wrap"})
            for (const std::vector<int64_t>& pads : {std::vector<int64_t>{0, 0, 1, 2, 0, 0, 2, 1},
                                                     {1, 0, 0, 3, 1, 1, 0, 2},
                                                     {0, 0, 2, 0, 0, 0, 1, 0},
                                                     {0, 1, 0, 0, 0, 1, 0, 0},
                                                     {0, 0, -1, 2, 0, 0, 1, -2}}) {
                SCOPED_TRACE(std::string(mode) + to_string(pads));
                OpTest("Pad")
                    .input(random(dtype, {2, 3, 5, 7}, 1))
                    .constant(ints(pads))
                    .constant(random(dtype, {}, 3, 1, 2))
                    .attribute("mode", std::string(mode))
                    .check();
            }
    OpTest("Pad")
        .input(random(DType::f32, {2, 3}, 1))
        .constant(ints({1, 2}))
        .absent()
        .constant(ints({-1}))
        .check();
    OpTest("Pad")
        .convolved(random(DType::f32, {2, 17, 5, 7}, 1))
        .constant(ints({0, 0, 1, 2, 0, 0, 2, 1}))
        .check();
    OpTest("Pad")
        .convolved(random(DType::f32, {2, 17, 5, 7}, 1))
        .constant(ints({0, 1, 0, 0, 0, 0, 0, 0}))
        .check();
    OpTest("Pad")
        .convolved(random(DType::f32, {2, 17, 5, 7}, 1))
        .constant(ints({0, 0, 1, 2, 0, 0, 2, 1}))
        .attribute("mode", std::string("reflect"))
        .check();
}

TEST(EngineGather, ElementsRowsAndPositions) {
    for (const DType dtype : kTypes)
        for (const DType index : {DType::i64, DType::i32}) {
            for (const int64_t axis : {0, 1, 2, -1}) {
                OpTest("Gather")
                    .input(random(dtype, {5, 6, 7}, 1))
                    .input(random(index, {2, 3}, 2, -5, 5))
                    .attribute("axis", axis)
                    .check();
                OpTest("Gather")
                    .sliced(random(dtype, {5, 6, 7}, 1))
                    .constant(random(index, {}, 2, -5, 5))
                    .attribute("axis", axis)
                    .check();
                OpTest("GatherElements")
                    .input(random(dtype, {5, 6, 7}, 1))
                    .input(random(index, {4, 5, 5}, 2, -5, 5))
                    .attribute("axis", axis)
                    .check();
            }
            OpTest("GatherND")
                .input(random(dtype, {5, 6, 7}, 1))
                .input(random(DType::i64, {3, 2}, 2, -5, 5))
                .check();
            OpTest("GatherND")
                .input(random(dtype, {5, 6, 7}, 1))
                .input(random(DType::i64, {5, 4, 1}, 2, -5, 5))
                .attribute("batch_dims", int64_t{1})
                .check();
        }
}

TEST(EngineGather, OutOfRangeIsAnError) {
    for (const char* op : {"Gather", "GatherElements", "GatherND"})
        EXPECT_THROW(
            OpTest(op).input(random(DType::f32, {5, 6}, 1)).input(Tensor::of<int64_t>({1, 1}, {9})).steps(),
            Error)
            << op;
    EXPECT_THROW(OpTest("ScatterElements")
                     .input(random(DType::f32, {5, 6}, 1))
                     .input(Tensor::of<int64_t>({1, 1}, {9}))
                     .input(random(DType::f32, {1, 1}, 1))
                     .steps(),
                 Error);
}

TEST(EngineScatter, ReplacesElements) {
    for (const DType dtype : kTypes) {
        for (const int64_t axis : {0, 1, -1})
            OpTest("ScatterElements")
                .input(random(dtype, {5, 6, 7}, 1))
                .input(random(DType::i64, {4, 5, 5}, 2, -5, 5))
                .input(random(dtype, {4, 5, 5}, 3))
                .attribute("axis", axis)
                .check();
        OpTest("ScatterND")
            .input(random(dtype, {5, 6, 7}, 1))
            .input(random(DType::i64, {3, 2}, 2, -5, 5))
            .input(random(dtype, {3, 7}, 3))
            .check();
        OpTest("ScatterND")
            .transposed(random(dtype, {5, 6, 7}, 1))
            .input(random(DType::i64, {3, 3}, 2, -5, 5))
            .input(random(dtype, {3}, 3))
            .check();
    }
}

TEST(EngineOneHot, AnyAxis) {
    for (const int64_t axis : {0, 1, -1})
        OpTest("OneHot")
            .input(random(DType::i64, {3, 17}, 1, -12, 12))
            .constant(Tensor::scalar<int64_t>(10))
            .constant(Tensor::of<float>({2}, {-1.0F, 3.0F}))
            .attribute("axis", axis)
            .check();
    OpTest("OneHot")
        .input(random(DType::i32, {5}, 1, 0, 9))
        .constant(Tensor::scalar<int64_t>(10))
        .constant(Tensor::of<int64_t>({2}, {0, 1}))
        .check();
}

TEST(EngineTrilu, BothTriangles) {
    for (const DType dtype : kTypes)
        for (const int64_t upper : {0, 1})
            for (const int64_t k : {-99, -3, 0, 2, 99})
                OpTest("Trilu")
                    .input(random(dtype, {2, 5, 17}, 1))
                    .constant(Tensor::scalar(k))
                    .attribute("upper", upper)
                    .check();
    OpTest("Trilu").input(random(DType::f32, {7, 5}, 1)).check();
}

TEST(EngineConcat, AnyAxisAndLayout) {
    for (const DType dtype : kTypes)
        for (const int64_t axis : {0, 1, 2, -1}) {
            Shape other{3, 5, 7};
            other[static_cast<size_t>(axis < 0 ? 2 : axis)] = 17;
            OpTest("Concat")
                .input(random(dtype, {3, 5, 7}, 1))
                .transposed(random(dtype, other, 2))
                .sliced(random(dtype, {3, 5, 7}, 3))
                .attribute("axis", axis)
                .check();
        }
    for (const int64_t channels : {16, 17, 3}) {
        OpTest("Concat")
            .convolved(random(DType::f32, {2, channels, 5, 7}, 1))
            .convolved(random(DType::f32, {2, 16, 5, 7}, 2))
            .attribute("axis", int64_t{1})
            .check();
        OpTest("Concat")
            .convolved(random(DType::f32, {2, channels, 5, 7}, 1))
            .input(random(DType::f32, {2, 3, 5, 7}, 2))
            .attribute("axis", int64_t{1})
            .check();
        OpTest("Concat")
            .convolved(random(DType::f32, {2, channels, 5, 7}, 1))
            .input(random(DType::f32, {2, channels, 1, 7}, 2))
            .attribute("axis", int64_t{2})
            .check();
    }
}

TEST(EngineReshape, OfViews) {
    OpTest("Reshape").transposed(random(DType::f32, {4, 5, 6}, 1)).constant(ints({10, 12})).check();
    OpTest("Reshape").sliced(random(DType::f32, {4, 5, 6}, 1)).constant(ints({-1})).check();
    OpTest("Flatten").convolved(random(DType::f32, {2, 17, 5, 7}, 1)).check();
    OpTest("Unsqueeze").transposed(random(DType::f32, {4, 5, 6}, 1)).constant(ints({1})).then("Relu").check();
    OpTest("Squeeze").sliced(random(DType::f32, {4, 1, 6}, 1)).constant(ints({1})).then("Relu").check();
}

}  // namespace kilter::engine::testing::movement_test
