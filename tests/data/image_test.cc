#include "data/image.h"

#include <cstdio>

#include <gtest/gtest.h>
#include <jpeglib.h>
#include <png.h>

#include "kilter/base/error.h"

namespace kilter {
namespace {

// Smooth, so that JPEG keeps it nearly as it is.
Image gradient(int64_t width, int64_t height) {
    Image image{width, height, {}};
    for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x) {
            image.pixels.push_back(static_cast<uint8_t>(255 * x / width));
            image.pixels.push_back(static_cast<uint8_t>(255 * y / height));
            image.pixels.push_back(128);
        }
    return image;
}

std::vector<std::byte> as_png(const Image& image) {
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    png.width = static_cast<uint32_t>(image.width);
    png.height = static_cast<uint32_t>(image.height);
    png.format = PNG_FORMAT_RGB;
    png_alloc_size_t bytes = 0;
    png_image_write_to_memory(&png, nullptr, &bytes, 0, image.pixels.data(), 0, nullptr);
    std::vector<std::byte> file(bytes);
    png_image_write_to_memory(&png, file.data(), &bytes, 0, image.pixels.data(), 0, nullptr);
    file.resize(bytes);
    return file;
}

std::vector<std::byte> as_jpeg(const Image& image) {
    jpeg_compress_struct jpeg{};
    jpeg_error_mgr errors{};
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    unsigned char* memory = nullptr;
    unsigned long bytes = 0;
    jpeg_mem_dest(&jpeg, &memory, &bytes);
    jpeg.image_width = static_cast<unsigned>(image.width);
    jpeg.image_height = static_cast<unsigned>(image.height);
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 95, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        auto* row = const_cast<uint8_t*>(image.pixels.data()) + 3 * image.width * jpeg.next_scanline;
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    const auto* start = reinterpret_cast<const std::byte*>(memory);
    std::vector<std::byte> file(start, start + bytes);
    std::free(memory);
    return file;
}

TEST(Image, PngIsReadExactly) {
    const Image image = gradient(37, 21);
    const Image read = decode_image(as_png(image));
    EXPECT_EQ(read.width, 37);
    EXPECT_EQ(read.height, 21);
    EXPECT_EQ(read.pixels, image.pixels);
}

TEST(Image, JpegIsReadNearly) {
    const Image image = gradient(64, 48);
    const Image read = decode_image(as_jpeg(image));
    ASSERT_EQ(read.pixels.size(), image.pixels.size());
    for (size_t i = 0; i < image.pixels.size(); ++i) ASSERT_NEAR(read.pixels[i], image.pixels[i], 8) << i;
}

TEST(Image, TruncatedFilesAreErrors) {
    for (const auto& file : {as_png(gradient(40, 30)), as_jpeg(gradient(40, 30))})
        for (size_t length = 0; length + 40 < file.size(); ++length)
            EXPECT_THROW(decode_image(std::span(file).first(length)), Error) << length;
}

TEST(Image, DamagedFilesAreErrorsOrImagesButNothingWorse) {
    for (const auto& file : {as_png(gradient(40, 30)), as_jpeg(gradient(40, 30))})
        for (size_t position = 0; position < file.size(); ++position) {
            std::vector<std::byte> damaged = file;
            damaged[position] ^= std::byte{0xFF};
            try {
                const Image image = decode_image(damaged);
                EXPECT_EQ(static_cast<int64_t>(image.pixels.size()), 3 * image.width * image.height);
            } catch (const Error&) {
            }
        }
}

TEST(Image, FilesOfOtherKindsAreNamed) {
    try {
        read_image("/dev/null/nothing.png");
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("nothing.png"), std::string::npos);
    }
}

TEST(Image, ResizingKeepsAConstantAndAGradient) {
    Image flat{50, 31, std::vector<uint8_t>(50 * 31 * 3, 77)};
    for (const int64_t side : {8, 31, 64}) {
        const Image resized = resize_short_side(flat, side);
        EXPECT_EQ(resized.height, side);
        EXPECT_EQ(resized.width, std::max(side, 50 * side / 31));
        for (const uint8_t value : resized.pixels) ASSERT_EQ(value, 77);
    }
    const Image half = resize_short_side(gradient(256, 256), 128);
    for (int64_t x = 1; x < 127; ++x) EXPECT_NEAR(half.pixels[static_cast<size_t>(3 * x)], 2 * x, 1.01) << x;
}

TEST(Image, CropsTheMiddle) {
    const Image crop = center_crop(gradient(256, 256), 64, 32);
    EXPECT_EQ(crop.width, 64);
    EXPECT_EQ(crop.height, 32);
    EXPECT_EQ(crop.pixels[0], gradient(256, 256).pixels[3 * 96]);
    EXPECT_THROW(center_crop(gradient(10, 10), 11, 10), Error);
}

TEST(Image, BecomesATensorInBothLayouts) {
    const Image image = gradient(4, 2);
    const Normalization normalization{1 / 255.0F, {0.5F, 0.25F, 0}, {0.5F, 1, 2}};
    const Tensor planar = to_tensor(image, 3, Layout::nchw, normalization);
    const Tensor packed = to_tensor(image, 3, Layout::nhwc, normalization);
    EXPECT_EQ(planar.shape(), (Shape{3, 2, 4}));
    EXPECT_EQ(packed.shape(), (Shape{2, 4, 3}));
    for (size_t pixel = 0; pixel < 8; ++pixel)
        for (size_t c = 0; c < 3; ++c) {
            const float expected =
                (static_cast<float>(image.pixels[3 * pixel + c]) / 255 - normalization.mean[c]) /
                normalization.std[c];
            EXPECT_NEAR(planar.as<float>()[c * 8 + pixel], expected, 1e-6);
            EXPECT_NEAR(packed.as<float>()[pixel * 3 + c], expected, 1e-6);
        }
    EXPECT_EQ(to_tensor(image, 1, Layout::nchw, {}).shape(), (Shape{1, 2, 4}));
    EXPECT_THROW(to_tensor(image, 4, Layout::nchw, {}), Error);
}

}  // namespace
}  // namespace kilter
