#include "data/resize.h"

#include <gtest/gtest.h>

#include "kilter/base/error.h"

namespace kilter::data_resize_test {

constexpr Interpolation kAll[] = {Interpolation::nearest, Interpolation::bilinear, Interpolation::bicubic,
                                  Interpolation::area};
constexpr Resampler kBoth[] = {Resampler::pillow, Resampler::opencv};

// tests/python/test_transforms.py compares with Pillow and OpenCV themselves.
TEST(ResizeImage, KeepsAConstant) {
    for (const Resampler resampler : kBoth)
        for (const Interpolation interpolation : kAll)
            for (const DType dtype : {DType::u8, DType::f32})
                for (const Shape& target : {Shape{1, 1, 3}, {8, 77, 3}, {64, 3, 3}, {31, 50, 3}}) {
                    const Tensor flat = Tensor::filled(dtype, {31, 50, 3}, 77);
                    const Tensor resized = resize(flat, target[0], target[1], interpolation, resampler);
                    ASSERT_EQ(resized.shape(), target);
                    ASSERT_EQ(resized.dtype(), dtype);
                    for (const double value : resized.to_doubles()) ASSERT_NEAR(value, 77, 1e-4);
                }
}

TEST(ResizeImage, TakesAnyNumberOfChannels) {
    const Tensor ramp = Tensor::of<uint8_t>({1, 4, 1}, {0, 100, 200, 40});
    EXPECT_TRUE(identical(resize(ramp, 1, 2, Interpolation::area, Resampler::pillow),
                          Tensor::of<uint8_t>({1, 2, 1}, {50, 120})));
    EXPECT_TRUE(identical(resize(ramp, 2, 2, Interpolation::nearest, Resampler::pillow),
                          Tensor::of<uint8_t>({2, 2, 1}, {100, 40, 100, 40})));
    EXPECT_TRUE(identical(resize(ramp, 2, 2, Interpolation::nearest, Resampler::opencv),
                          Tensor::of<uint8_t>({2, 2, 1}, {0, 200, 0, 200})));
}

TEST(ResizeImage, RefusesWhatIsNoImage) {
    const auto attempt = [](const Tensor& image, int64_t height, int64_t width) {
        return resize(image, height, width, Interpolation::bilinear, Resampler::pillow);
    };
    EXPECT_THROW(attempt(Tensor(DType::u8, {0, 4, 3}), 2, 2), Error);
    EXPECT_THROW(attempt(Tensor(DType::u8, {4, 4}), 2, 2), Error);
    EXPECT_THROW(attempt(Tensor::filled(DType::i64, {4, 4, 3}, 0), 2, 2), Error);
    EXPECT_THROW(attempt(Tensor::filled(DType::u8, {4, 4, 3}, 0), 1 << 20, 1 << 20), Error);
}

}  // namespace kilter::data_resize_test
