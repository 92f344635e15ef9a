#include "data/jpeg.h"

#include <csetjmp>
#include <cstdio>

// jpeglib.h needs FILE and size_t.
#include <jpeglib.h>
// jerror.h needs jpeglib.h.
#include <jerror.h>

#include "base/fail.h"

namespace kilter {
namespace {

// libjpeg reports errors by a callback that must not return; it is C, so nothing may be thrown through it.
struct ErrorState {
    jpeg_error_mgr manager;
    std::jmp_buf jump;
    char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr jpeg) {
    auto* state = reinterpret_cast<ErrorState*>(jpeg->err);
    state->manager.format_message(jpeg, state->message);
    std::longjmp(state->jump, 1);
}

// Most warnings are about harmless oddities; these two mean that pixels are missing.
void warn(j_common_ptr jpeg, int level) {
    const int code = jpeg->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) leave(jpeg);
}

// The plain part of the work between setjmp and longjmp: no object with a destructor is made or changed in here.
struct Decoder {
    ErrorState errors;
    jpeg_decompress_struct jpeg;
    std::span<const std::byte> bytes;

    bool start() {
        jpeg.err = jpeg_std_error(&errors.manager);
        errors.manager.error_exit = leave;
        errors.manager.emit_message = warn;
        if (setjmp(errors.jump) != 0) return false;
        jpeg_create_decompress(&jpeg);
        jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
        jpeg_read_header(&jpeg, TRUE);
        const bool cmyk = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
        jpeg.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
        jpeg.dct_method = JDCT_ISLOW;
        return true;
    }

    bool read(uint8_t* rows) {
        if (setjmp(errors.jump) != 0) return false;
        jpeg_start_decompress(&jpeg);
        const size_t stride = static_cast<size_t>(jpeg.output_width) * jpeg.output_components;
        while (jpeg.output_scanline < jpeg.output_height) {
            JSAMPROW row = rows + jpeg.output_scanline * stride;
            jpeg_read_scanlines(&jpeg, &row, 1);
        }
        return true;
    }
};

// Adobe stores CMYK inverted: 255 is no ink.
Tensor from_cmyk(const Tensor& image, bool inverted) {
    Tensor result(DType::u8, {image.dim(0), image.dim(1), 3});
    const std::span<const uint8_t> cmyk = image.as<uint8_t>();
    uint8_t* rgb = result.as_mutable<uint8_t>().data();
    for (size_t i = 0; i < cmyk.size(); i += 4) {
        const auto light = [&](size_t k) { return inverted ? cmyk[i + k] : 255 - cmyk[i + k]; };
        for (size_t c = 0; c < 3; ++c) *rgb++ = static_cast<uint8_t>(light(c) * light(3) / 255);
    }
    return result;
}

}  // namespace

bool is_jpeg(std::span<const std::byte> bytes) {
    return bytes.size() >= 3 && bytes[0] == std::byte{0xFF} && bytes[1] == std::byte{0xD8} &&
           bytes[2] == std::byte{0xFF};
}

Tensor decode_jpeg(std::span<const std::byte> bytes) {
    Decoder decoder{};
    decoder.bytes = bytes;
    struct Release {
        jpeg_decompress_struct* jpeg;
        ~Release() { jpeg_destroy_decompress(jpeg); }
    } const release{&decoder.jpeg};

    require(decoder.start(), "a damaged JPEG image: {}", decoder.errors.message);
    const int64_t width = decoder.jpeg.image_width;
    const int64_t height = decoder.jpeg.image_height;
    require(width * height <= kMostPixels, "a JPEG image of {}x{} pixels is too large", width, height);
    const bool cmyk = decoder.jpeg.out_color_space == JCS_CMYK;
    Tensor image(DType::u8, {height, width, cmyk ? 4 : 3});
    require(decoder.read(image.as_mutable<uint8_t>().data()), "a damaged JPEG image: {}",
            decoder.errors.message);
    return cmyk ? from_cmyk(image, decoder.jpeg.saw_Adobe_marker != 0) : image;
}

}  // namespace kilter
