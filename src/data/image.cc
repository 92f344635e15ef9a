#include "data/image.h"

#include <cctype>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "data/jpeg.h"
#include "data/png.h"

namespace kilter {

Tensor decode_image(std::span<const std::byte> bytes) {
    if (is_jpeg(bytes)) return decode_jpeg(bytes);
    if (is_png(bytes)) return decode_png(bytes);
    fail("neither a JPEG nor a PNG image");
}

Tensor read_image(const std::filesystem::path& path) {
    const auto file = MappedFile::open(path);
    try {
        return decode_image(file->bytes());
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

bool is_image_name(const std::filesystem::path& path) {
    std::string extension = path.extension().string();
    for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

Tensor with_channels(const Tensor& image, int64_t channels) {
    const int64_t present = image.dim(2);
    if (present == channels) return image;
    require(channels == 1 || channels == 3 || channels == 4, "images have 1, 3 or 4 channels, not {}",
            channels);
    require(present == 1 || present == 3 || present == 4, "an image of {} channels cannot get {}", present,
            channels);
    Tensor result(DType::u8, {image.dim(0), image.dim(1), channels});
    const uint8_t* source = image.as<uint8_t>().data();
    uint8_t* target = result.as_mutable<uint8_t>().data();
    const int64_t count = image.dim(0) * image.dim(1);
    for (int64_t i = 0; i < count; ++i, source += present, target += channels) {
        const uint8_t* rgb[3] = {source, source + (present > 1 ? 1 : 0), source + (present > 1 ? 2 : 0)};
        if (channels == 1) {
            // ITU-R BT.601 luma in 16 bits of fraction, rounded.
            target[0] =
                static_cast<uint8_t>((19595 * *rgb[0] + 38470 * *rgb[1] + 7471 * *rgb[2] + 0x8000) >> 16);
            continue;
        }
        for (int c = 0; c < 3; ++c) target[c] = *rgb[c];
        if (channels == 4) target[3] = 255;
    }
    return result;
}

}  // namespace kilter
