#include <limits>

#include "ops/run_op.h"

namespace kilter::pool_test {

using testing::attributes;
using testing::error_of;
using testing::infer_op;
using testing::random_tensor;
using testing::run_op;
using Ints = std::vector<int64_t>;

const std::string kSameUpper = "SAME_UPPER";

TEST(MaxPool, FindsTheLargestElementAndItsPlace) {
    const Tensor x = Tensor::of<float>({1, 1, 3, 3}, {1, 2, 3, 4, 9, 6, 7, 8, 5});
    const Attributes window = attributes({{"kernel_shape", Ints{2, 2}}});
    const std::vector<Tensor> row_major = run_op("MaxPool", {x}, window, 2);
    testing::expect_near(row_major[0], Tensor::of<float>({1, 1, 2, 2}, {9, 9, 9, 9}));
    EXPECT_EQ(row_major[1].to_ints(), (Ints{4, 4, 4, 4}));
    Attributes columns = attributes({{"kernel_shape", Ints{1, 1}}, {"storage_order", int64_t{1}}});
    EXPECT_EQ(run_op("MaxPool", {x}, columns, 2)[1].to_ints(), (Ints{0, 3, 6, 1, 4, 7, 2, 5, 8}));
}

TEST(MaxPool, NeverReturnsPadding) {
    const Tensor x = Tensor::of<float>({1, 1, 2}, {-5, -7});
    const Attributes padded = attributes({{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}});
    testing::expect_near(run_op("MaxPool", {x}, padded)[0], Tensor::of<float>({1, 1, 3}, {-5, -5, -7}));
}

TEST(MaxPool, PoolsSmallIntegers) {
    const Tensor x = Tensor::of<int8_t>({1, 1, 4}, {-3, -128, 5, 127});
    const Attributes pairs = attributes({{"kernel_shape", Ints{2}}, {"strides", Ints{2}}});
    EXPECT_EQ(run_op("MaxPool", {x}, pairs)[0].to_ints(), (Ints{-3, 127}));
}

// A window that would start beyond the input and its leading padding is dropped, in ceil mode too.
TEST(MaxPool, CeilModeIgnoresWindowsInTheTrailingPadding) {
    const auto extent = [](int64_t input, int64_t kernel, int64_t stride, int64_t pad) {
        const Attributes window = attributes({{"kernel_shape", Ints{kernel}},
                                              {"strides", Ints{stride}},
                                              {"pads", Ints{pad, pad}},
                                              {"ceil_mode", int64_t{1}}});
        return infer_op("MaxPool", {{DType::f32, {1, 1, input}}}, window).shape->at(2).value;
    };
    EXPECT_EQ(extent(4, 3, 2, 0), 2);
    EXPECT_EQ(extent(2, 1, 2, 0), 1);  // the second window would start at 2
    EXPECT_EQ(extent(5, 3, 3, 1), 2);
    EXPECT_EQ(extent(6, 3, 3, 1), 3);
}

TEST(AveragePool, CountsPaddingOnlyWhenAsked) {
    const Tensor x = Tensor::of<float>({1, 1, 3}, {3, 6, 9});
    const auto pool = [&](int64_t include) {
        return run_op("AveragePool", {x},
                      attributes({{"kernel_shape", Ints{2}},
                                  {"pads", Ints{1, 0}},
                                  {"strides", Ints{2}},
                                  {"ceil_mode", int64_t{1}},
                                  {"count_include_pad", include}}))[0];
    };
    testing::expect_near(pool(0), Tensor::of<float>({1, 1, 2}, {3, 7.5F}));
    testing::expect_near(pool(1), Tensor::of<float>({1, 1, 2}, {1.5F, 7.5F}));
}

TEST(AveragePool, NeverCountsWhatOnlyCeilModeReaches) {
    const Tensor x = Tensor::of<float>({1, 1, 3}, {3, 6, 9});
    const Attributes window = attributes({{"kernel_shape", Ints{2}},
                                          {"strides", Ints{2}},
                                          {"ceil_mode", int64_t{1}},
                                          {"count_include_pad", int64_t{1}}});
    testing::expect_near(run_op("AveragePool", {x}, window)[0], Tensor::of<float>({1, 1, 2}, {4.5F, 9}));
}

TEST(AveragePool, SamePaddingKeepsTheExtent) {
    const Tensor x = random_tensor({1, 2, 5, 7}, 1);
    const Attributes same = attributes({{"kernel_shape", Ints{3, 2}}, {"auto_pad", kSameUpper}});
    EXPECT_EQ(run_op("AveragePool", {x}, same)[0].shape(), x.shape());
    EXPECT_EQ(to_string(infer_op("AveragePool", {{DType::f32, {Dim("n"), 2, Dim("h"), 7}}}, same)),
              "f32[n, 2, h, 7]");
}

TEST(LpPool, IsTheNormOfEachWindow) {
    const Tensor x = Tensor::of<float>({1, 1, 4}, {3, -4, 6, 8});
    const Attributes pairs = attributes({{"kernel_shape", Ints{2}}, {"strides", Ints{2}}});
    testing::expect_near(run_op("LpPool", {x}, pairs)[0], Tensor::of<float>({1, 1, 2}, {5, 10}));
}

TEST(GlobalPools, ReduceEveryChannelToOneNumber) {
    const Tensor x = Tensor::of<float>({1, 2, 1, 2}, {3, -4, 6, 8});
    testing::expect_near(run_op("GlobalAveragePool", {x})[0], Tensor::of<float>({1, 2, 1, 1}, {-0.5F, 7}));
    testing::expect_near(run_op("GlobalMaxPool", {x})[0], Tensor::of<float>({1, 2, 1, 1}, {3, 8}));
    testing::expect_near(run_op("GlobalLpPool", {x})[0], Tensor::of<float>({1, 2, 1, 1}, {5, 10}));
}

TEST(MaxUnpool, InvertsMaxPool) {
    const Tensor x = random_tensor({2, 3, 4, 6}, 1);
    const Attributes window = attributes({{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
    const std::vector<Tensor> pooled = run_op("MaxPool", {x}, window, 2);
    const Tensor restored = run_op("MaxUnpool", {pooled[0], pooled[1]}, window)[0];
    ASSERT_EQ(restored.shape(), x.shape());
    testing::expect_near(run_op("MaxPool", {restored}, window)[0],
                         run_op("MaxPool", {run_op("Relu", {x})[0]}, window)[0]);
    const Tensor outside = Tensor::filled(DType::i64, pooled[1].shape(), 1000);
    EXPECT_THROW(run_op("MaxUnpool", {pooled[0], outside}, window), Error);
}

TEST(Pools, RejectHostileAttributes) {
    constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
    const Tensor x = random_tensor({1, 1, 8, 8}, 1);
    for (const char* op : {"MaxPool", "AveragePool", "LpPool"})
        for (const Attributes& hostile :
             {attributes({}), attributes({{"kernel_shape", Ints{3}}}),
              attributes({{"kernel_shape", Ints{0, 1}}}), attributes({{"kernel_shape", Ints{kHuge, kHuge}}}),
              attributes({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{0, 0}}}),
              attributes({{"kernel_shape", Ints{3, 3}}, {"dilations", Ints{kHuge, 1}}}),
              attributes({{"kernel_shape", Ints{3, 3}}, {"pads", Ints{3, 0, 0, 0}}}),
              attributes({{"kernel_shape", Ints{3, 3}}, {"pads", Ints{0, 0, -1, 0}}})}) {
            EXPECT_THROW(run_op(op, {x}, hostile), Error) << op;
            EXPECT_THROW(infer_op(op, {ValueType::of(x)}, hostile), Error) << op;
        }
    EXPECT_EQ(
        error_of([&] {
            infer_op("MaxPool", {ValueType::of(x)}, attributes({{"kernel_shape", Ints{9, 1}}}));
        }),
        "operator 'node' (MaxPool): a kernel of extent 9 does not fit the input of extent 8 (with padding) along "
        "spatial axis 0");
}

}  // namespace kilter::pool_test
