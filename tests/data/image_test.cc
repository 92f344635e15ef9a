#include "data/image.h"

#include <cstdio>

#include <gtest/gtest.h>
#include <jpeglib.h>
#include <png.h>

#include "kilter/base/error.h"

namespace kilter::image_test {

// Smooth, so that JPEG keeps it nearly as it is.
Tensor gradient(int64_t width, int64_t height) {
    Tensor image(DType::u8, {height, width, 3});
    uint8_t* pixel = image.as_mutable<uint8_t>().data();
    for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x) {
            *pixel++ = static_cast<uint8_t>(255 * x / width);
            *pixel++ = static_cast<uint8_t>(255 * y / height);
            *pixel++ = 128;
        }
    return image;
}

std::vector<std::byte> as_png(const Tensor& image) {
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    png.width = static_cast<uint32_t>(image.dim(1));
    png.height = static_cast<uint32_t>(image.dim(0));
    png.format = PNG_FORMAT_RGB;
    png_alloc_size_t bytes = 0;
    png_image_write_to_memory(&png, nullptr, &bytes, 0, image.raw(), 0, nullptr);
    std::vector<std::byte> file(bytes);
    png_image_write_to_memory(&png, file.data(), &bytes, 0, image.raw(), 0, nullptr);
    file.resize(bytes);
    return file;
}

std::vector<std::byte> as_jpeg(const Tensor& image) {
    jpeg_compress_struct jpeg{};
    jpeg_error_mgr errors{};
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    unsigned char* memory = nullptr;
    unsigned long bytes = 0;
    jpeg_mem_dest(&jpeg, &memory, &bytes);
    jpeg.image_width = static_cast<unsigned>(image.dim(1));
    jpeg.image_height = static_cast<unsigned>(image.dim(0));
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 95, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height) {
        auto* row =
            static_cast<uint8_t*>(const_cast<void*>(image.raw())) + 3 * image.dim(1) * jpeg.next_scanline;
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
    const Tensor image = gradient(37, 21);
    EXPECT_TRUE(identical(decode_image(as_png(image)), image));
}

TEST(Image, JpegIsReadNearly) {
    const Tensor image = gradient(64, 48);
    const Tensor read = decode_image(as_jpeg(image));
    ASSERT_EQ(read.shape(), image.shape());
    for (size_t i = 0; i < static_cast<size_t>(image.size()); ++i)
        ASSERT_NEAR(read.as<uint8_t>()[i], image.as<uint8_t>()[i], 8) << i;
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
                EXPECT_EQ(decode_image(damaged).dim(2), 3);
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

TEST(Image, ChannelsComeAndGo) {
    const Tensor image = Tensor::of<uint8_t>({1, 2, 3}, {255, 0, 0, 10, 20, 30});
    EXPECT_TRUE(identical(with_channels(image, 1), Tensor::of<uint8_t>({1, 2, 1}, {76, 18})));
    EXPECT_TRUE(identical(with_channels(image, 4),
                          Tensor::of<uint8_t>({1, 2, 4}, {255, 0, 0, 255, 10, 20, 30, 255})));
    EXPECT_TRUE(identical(with_channels(with_channels(image, 4), 3), image));
    EXPECT_TRUE(identical(with_channels(Tensor::of<uint8_t>({1, 1, 1}, {9}), 3),
                          Tensor::of<uint8_t>({1, 1, 3}, {9, 9, 9})));
    EXPECT_THROW(with_channels(image, 2), Error);
}

}  // namespace kilter::image_test
