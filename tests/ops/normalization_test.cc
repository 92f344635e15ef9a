#include "ops/run_op.h"

namespace kilter::normalization_test {

using testing::attributes;
using testing::infer_op;
using testing::random_tensor;
using testing::run_op;

// Mean and variance of a run of numbers.
std::pair<double, double> moments(std::span<const float> values) {
    double sum = 0, squares = 0;
    for (const float value : values) sum += value;
    const double mean = sum / static_cast<double>(values.size());
    for (const float value : values) squares += (value - mean) * (value - mean);
    return {mean, squares / static_cast<double>(values.size())};
}

TEST(BatchNormalization, NormalizesWithGivenStatistics) {
    const Tensor x = Tensor::of<float>({1, 2, 2}, {1, 3, 10, 20});
    const Tensor y = run_op("BatchNormalization",
                            {x, Tensor::of<float>({2}, {2, 1}), Tensor::of<float>({2}, {0, 5}),
                             Tensor::of<float>({2}, {1, 10}), Tensor::of<float>({2}, {4, 25})},
                            attributes({{"epsilon", 0.0F}}))[0];
    testing::expect_near(y, Tensor::of<float>({1, 2, 2}, {0, 2, 5, 7}));
}

TEST(BatchNormalization, TrainingUsesAndUpdatesItsOwnStatistics) {
    const Tensor x = random_tensor({4, 1, 5}, 1);
    const Tensor one = Tensor::of<float>({1}, {1}), zero = Tensor::of<float>({1}, {0});
    const std::vector<Tensor> results =
        run_op("BatchNormalization", {x, one, zero, zero, one},
               attributes({{"training_mode", int64_t{1}}, {"momentum", 0.75F}}), 3);
    const auto [mean, variance] = moments(x.as<float>());
    EXPECT_NEAR(moments(results[0].as<float>()).first, 0, 1e-5);
    EXPECT_NEAR(moments(results[0].as<float>()).second, 1, 1e-3);
    EXPECT_NEAR(results[1].as<float>()[0], 0.25 * mean, 1e-5);
    EXPECT_NEAR(results[2].as<float>()[0], 0.75 + 0.25 * variance, 1e-5);
}

TEST(LayerNormalization, GivesStatisticsAndNormalizedRows) {
    const Tensor x = random_tensor({3, 2, 7}, 1);
    const std::vector<Tensor> results = run_op(
        "LayerNormalization", {x, Tensor::filled(DType::f32, {2, 7}, 2), Tensor::filled(DType::f32, {7}, 1)},
        attributes({{"axis", int64_t{1}}, {"epsilon", 0.0F}}), 3);
    ASSERT_EQ(results[1].shape(), (Shape{3, 1, 1}));
    for (size_t row = 0; row < 3; ++row) {
        const auto [mean, variance] = moments(x.as<float>().subspan(row * 14, 14));
        EXPECT_NEAR(results[1].as<float>()[row], mean, 1e-5);
        EXPECT_NEAR(results[2].as<float>()[row], 1 / std::sqrt(variance), 1e-4);
        for (size_t i = row * 14; i < row * 14 + 14; ++i)
            EXPECT_NEAR(results[0].as<float>()[i], 1 + 2 * (x.as<float>()[i] - mean) / std::sqrt(variance),
                        1e-4);
    }
}

TEST(LayerNormalization, RefusesAScaleLargerThanTheInput) {
    EXPECT_THROW(run_op("LayerNormalization", {random_tensor({2, 3}, 1), random_tensor({4, 2, 3}, 2)}),
                 Error);
    EXPECT_THROW(infer_op("LayerNormalization", {{DType::f32, {2, 3}}, {DType::f32, {4}}}), Error);
}

TEST(GroupNormalization, OfOneChannelEachIsInstanceNormalization) {
    const Tensor x = random_tensor({2, 6, 3, 4}, 1);
    const Tensor scale = random_tensor({6}, 2), bias = random_tensor({6}, 3);
    testing::expect_near(
        run_op("GroupNormalization", {x, scale, bias}, attributes({{"num_groups", int64_t{6}}}))[0],
        run_op("InstanceNormalization", {x, scale, bias})[0]);
    EXPECT_THROW(run_op("GroupNormalization", {x, scale, bias}, attributes({{"num_groups", int64_t{4}}})),
                 Error);
    EXPECT_THROW(run_op("GroupNormalization", {x, scale, bias}, attributes({{"num_groups", int64_t{0}}})),
                 Error);
}

TEST(RMSNormalization, DividesByTheRootMeanSquare) {
    const Tensor x = Tensor::of<float>({1, 2}, {3, 4});
    const Tensor y =
        run_op("RMSNormalization", {x, Tensor::of<float>({2}, {1, 2})}, attributes({{"epsilon", 0.0F}}))[0];
    const float root = std::sqrt(12.5F);
    testing::expect_near(y, Tensor::of<float>({1, 2}, {3 / root, 8 / root}));
}

TEST(LRN, SumsOverNeighbouringChannels) {
    const Tensor x = Tensor::of<float>({1, 4, 1}, {1, 2, 3, 4});
    const Tensor y = run_op(
        "LRN", {x}, attributes({{"size", int64_t{2}}, {"alpha", 2.0F}, {"beta", 1.0F}, {"bias", 0.0F}}))[0];
    // An even window reaches one channel further up than down.
    testing::expect_near(y, Tensor::of<float>({1, 4, 1}, {1 / 5.0F, 2 / 13.0F, 3 / 25.0F, 4 / 16.0F}));
}

TEST(LpNormalization, LeavesZeroVectorsZero) {
    const Tensor x = Tensor::of<float>({2, 2}, {3, 4, 0, 0});
    testing::expect_near(run_op("LpNormalization", {x})[0], Tensor::of<float>({2, 2}, {0.6F, 0.8F, 0, 0}));
    EXPECT_THROW(run_op("LpNormalization", {x}, attributes({{"p", int64_t{3}}})), Error);
}

TEST(Softmax, SurvivesLargeNumbersAndAnyAxis) {
    const Tensor x = Tensor::of<float>({2, 2}, {1e4F, 0, 1e4F, 1e4F});
    testing::expect_near(run_op("Softmax", {x})[0], Tensor::of<float>({2, 2}, {1, 0, 0.5F, 0.5F}));
    testing::expect_near(run_op("Softmax", {x}, attributes({{"axis", int64_t{0}}}))[0],
                         Tensor::of<float>({2, 2}, {0.5F, 0, 0.5F, 1}));
    testing::expect_near(run_op("LogSoftmax", {x})[0],
                         Tensor::of<float>({2, 2}, {0, -1e4F, -std::log(2.0F), -std::log(2.0F)}));
    testing::expect_near(run_op("Hardmax", {x})[0], Tensor::of<float>({2, 2}, {1, 0, 1, 0}));
    EXPECT_THROW(run_op("Softmax", {x}, attributes({{"axis", int64_t{2}}})), Error);
    EXPECT_THROW(infer_op("Softmax", {ValueType::of(x)}, attributes({{"axis", int64_t{-3}}})), Error);
}

}  // namespace kilter::normalization_test
