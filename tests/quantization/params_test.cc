#include "kilter/quantization/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kilter/base/error.h"

namespace kilter::params_test {

Tensor vector_of(const std::vector<float>& values) {
    return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

float back(float value, const QuantParams& params) {
    return dequantize_tensor(quantize_tensor(vector_of({value}), params), params).as<float>()[0];
}

TEST(ActivationParams, RepresentZeroExactlyWhateverTheRange) {
    for (const Range range :
         {Range{-1.3F, 2.7F}, Range{0, 5}, Range{-7, 0}, Range{3, 5}, Range{-5, -3}, Range{-1e-30F, 1e30F}})
        for (const DType dtype : {DType::u8, DType::i8})
            for (const Scheme scheme : {Scheme::asym, Scheme::sym}) {
                const QuantParams params = activation_params(range, dtype, scheme);
                EXPECT_EQ(back(0.0F, params), 0.0F) << range.min << " … " << range.max;
                EXPECT_GT(params.scales[0], 0.0F);
            }
}

TEST(ActivationParams, CoverTheRangeToHalfAStep) {
    for (const Range range : {Range{-1.3F, 2.7F}, Range{0, 5}, Range{-7, 0}})
        for (const Scheme scheme : {Scheme::asym, Scheme::sym}) {
            const QuantParams params = activation_params(range, DType::u8, scheme);
            for (const float end : {range.min, range.max})
                EXPECT_NEAR(back(end, params), end, 0.501F * params.scales[0])
                    << range.min << " … " << range.max;
        }
}

TEST(ActivationParams, HaveZeroPointZeroWhenNothingIsNegative) {
    for (const Scheme scheme : {Scheme::asym, Scheme::sym})
        EXPECT_EQ(activation_params({0, 6}, DType::u8, scheme).zero_points[0], 0);
}

TEST(ActivationParams, PutTheZeroPointInTheMiddleWhenSymmetric) {
    const QuantParams params = activation_params({-1, 4}, DType::u8, Scheme::sym);
    EXPECT_EQ(params.zero_points[0], 128);
    EXPECT_FLOAT_EQ(params.scales[0], 4.0F / 127);
    EXPECT_EQ(activation_params({-1, 4}, DType::i8, Scheme::sym).zero_points[0], 0);
}

TEST(ActivationParams, SurviveDegenerateRanges) {
    EXPECT_EQ(activation_params({0, 0}).scales[0], 1.0F);
    const float tiny = std::numeric_limits<float>::denorm_min();
    const QuantParams small = activation_params({0, tiny});
    EXPECT_TRUE(std::isnormal(small.scales[0] * small.scales[0]));
    const float huge = std::numeric_limits<float>::max();
    EXPECT_TRUE(std::isfinite(activation_params({-huge, huge}).scales[0]));
}

TEST(ActivationParams, RefuseWhatIsNoRange) {
    EXPECT_THROW(activation_params({1, -1}), Error);
    EXPECT_THROW(activation_params({0, std::numeric_limits<float>::infinity()}), Error);
    EXPECT_THROW(activation_params({0, NAN}), Error);
    EXPECT_THROW(activation_params({0, 1}, DType::u8, Scheme::asym, 9), Error);
}

TEST(WeightParams, UseEveryChannelToTheFull) {
    const Tensor weights = Tensor::of<float>({2, 2}, {0.5F, -1.0F, 0.25F, 0.125F});
    const QuantParams params = weight_params(weights, 0);
    EXPECT_FLOAT_EQ(params.scales[0], 1.0F / 127);
    EXPECT_FLOAT_EQ(params.scales[1], 0.25F / 127);
    const Tensor integers = quantize_tensor(weights, params);
    EXPECT_EQ(integers.as<int8_t>()[1], -127);
    EXPECT_EQ(integers.as<int8_t>()[2], 127);
}

TEST(WeightParams, TakeOneScalePerColumnToo) {
    const Tensor weights = Tensor::of<float>({2, 2}, {0.5F, -1.0F, 0.25F, 2.0F});
    const QuantParams params = weight_params(weights, 1);
    EXPECT_FLOAT_EQ(params.scales[0], 0.5F / 127);
    EXPECT_FLOAT_EQ(params.scales[1], 2.0F / 127);
}

TEST(WeightParams, DoNotSpendBitsOnDeadChannels) {
    const Tensor weights = Tensor::of<float>({3, 1}, {1.0F, 1e-12F, 0.0F});
    const QuantParams params = weight_params(weights, 0);
    EXPECT_FLOAT_EQ(params.scales[1], 0.01F / 127);
    EXPECT_FLOAT_EQ(params.scales[2], 0.01F / 127);
    EXPECT_EQ(quantize_tensor(weights, params).as<int8_t>()[1], 0);
    EXPECT_EQ(weight_params(Tensor::filled(DType::f32, {2, 2}, 0), 0).scales[0], 1.0F);
}

TEST(WeightParams, StayWithinFewerBits) {
    const Tensor weights = vector_of({-1.0F, -0.5F, 0.3F, 1.0F});
    for (int bits = 2; bits <= 8; ++bits) {
        const int limit = (1 << (bits - 1)) - 1;
        const Tensor integers = quantize_tensor(weights, weight_params(weights, -1, bits), bits);
        EXPECT_EQ(integers.as<int8_t>()[0], -limit);
        EXPECT_EQ(integers.as<int8_t>()[3], limit);
    }
}

TEST(WeightParams, RefuseWeightsThatAreNotFinite) {
    EXPECT_THROW(weight_params(vector_of({1.0F, NAN}), -1), Error);
}

TEST(Quantize, RoundsHalfToEven) {
    const QuantParams params{DType::u8, {2.0F}, {10}, -1};
    const Tensor q = quantize_tensor(vector_of({1, 3, 5, -1, -3, 1000, -1000}), params);
    const std::vector<uint8_t> expected{10, 12, 12, 10, 8, 255, 0};
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(q.as<uint8_t>()[i], expected[i]) << i;
}

TEST(Bias, RaisesTheScaleOfAChannelWhoseBiasWouldNotFit) {
    QuantParams weights{DType::i8, {1e-9F, 0.1F}, {0, 0}, 0};
    const Tensor bias = vector_of({1000.0F, 1.0F});
    EXPECT_TRUE(fit_bias(weights, bias, 1e-3F));
    EXPECT_GT(weights.scales[0], 1e-9F);
    EXPECT_FLOAT_EQ(weights.scales[1], 0.1F);
    QuantParams params;
    const Tensor stored = quantize_bias(bias, weights, 1e-3F, params);
    EXPECT_NEAR(dequantize_tensor(stored, params).as<float>()[0], 1000.0F, 1e-3F);
    EXPECT_FALSE(fit_bias(weights, bias, 1e-3F));
}

TEST(Bias, HasTheScaleOfTheAccumulator) {
    const QuantParams weights{DType::i8, {0.5F, 0.25F}, {0, 0}, 0};
    QuantParams params;
    const Tensor stored = quantize_bias(vector_of({1.0F, -1.0F}), weights, 0.125F, params);
    EXPECT_EQ(stored.as<int32_t>()[0], 16);
    EXPECT_EQ(stored.as<int32_t>()[1], -32);
    EXPECT_EQ(params.axis, 0);
}

}  // namespace kilter::params_test
