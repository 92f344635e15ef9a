#include "data/png.h"

#include <png.h>

#include "base/fail.h"

namespace kilter {

bool is_png(std::span<const std::byte> bytes) {
    return bytes.size() >= 8 && png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, 8) == 0;
}

Tensor decode_png(std::span<const std::byte> bytes) {
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    struct Release {
        png_image* png;
        ~Release() { png_image_free(png); }
    } const release{&png};
    const auto check = [&](int good) { require(good != 0, "a damaged PNG image: {}", png.message); };

    check(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()));
    require(int64_t{png.width} * png.height <= kMostPixels, "a PNG image of {}x{} pixels is too large",
            png.width, png.height);
    // With an alpha channel nothing is blended onto a background; 16-bit samples are taken as sRGB, like 8-bit ones.
    png.format = PNG_FORMAT_RGBA;
    png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    Tensor rgba(DType::u8, {png.height, png.width, 4});
    check(png_image_finish_read(&png, nullptr, rgba.raw_mutable(), 0, nullptr));
    return with_channels(rgba, 3);
}

}  // namespace kilter
