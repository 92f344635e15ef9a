#include "data/image.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "data/jpeg.h"
#include "data/png.h"

namespace kilter {
namespace {

// For every target position, the source positions it averages and their weights.
struct Filter {
    struct Taps {
        int64_t first = 0;
        std::vector<float> weights;
    };
    std::vector<Taps> taps;
};

Filter triangle_filter(int64_t source, int64_t target) {
    const double ratio = static_cast<double>(source) / static_cast<double>(target);
    const double reach = std::max(ratio, 1.0);  // enlarging interpolates, shrinking averages
    Filter filter;
    for (int64_t i = 0; i < target; ++i) {
        const double center = (static_cast<double>(i) + 0.5) * ratio;
        const auto first = std::max<int64_t>(0, static_cast<int64_t>(center - reach + 0.5));
        const auto last = std::min<int64_t>(source, static_cast<int64_t>(center + reach + 0.5));
        Filter::Taps taps{first, {}};
        double sum = 0;
        for (int64_t k = first; k < last; ++k) {
            const double distance = std::fabs((static_cast<double>(k) + 0.5 - center) / reach);
            taps.weights.push_back(static_cast<float>(std::max(0.0, 1 - distance)));
            sum += taps.weights.back();
        }
        for (float& weight : taps.weights) weight = static_cast<float>(weight / sum);
        filter.taps.push_back(std::move(taps));
    }
    return filter;
}

uint8_t to_pixel(float value) { return static_cast<uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F)); }

Image resize_width(const Image& image, int64_t width) {
    const Filter filter = triangle_filter(image.width, width);
    Image result{width, image.height, {}};
    result.pixels.reserve(static_cast<size_t>(3 * width * image.height));
    for (int64_t y = 0; y < image.height; ++y) {
        const uint8_t* row = image.pixels.data() + 3 * y * image.width;
        for (const Filter::Taps& taps : filter.taps) {
            float sum[3] = {};
            const uint8_t* pixel = row + 3 * taps.first;
            for (const float weight : taps.weights)
                for (float& channel : sum) channel += weight * *pixel++;
            for (const float channel : sum) result.pixels.push_back(to_pixel(channel));
        }
    }
    return result;
}

Image resize_height(const Image& image, int64_t height) {
    const Filter filter = triangle_filter(image.height, height);
    Image result{image.width, height, {}};
    const auto row_bytes = static_cast<size_t>(3 * image.width);
    result.pixels.reserve(row_bytes * static_cast<size_t>(height));
    std::vector<float> sums(row_bytes);
    for (const Filter::Taps& taps : filter.taps) {
        std::ranges::fill(sums, 0.0F);
        const uint8_t* row = image.pixels.data() + row_bytes * static_cast<size_t>(taps.first);
        for (const float weight : taps.weights)
            for (float& sum : sums) sum += weight * *row++;
        for (const float sum : sums) result.pixels.push_back(to_pixel(sum));
    }
    return result;
}

}  // namespace

Image decode_image(std::span<const std::byte> bytes) {
    if (is_jpeg(bytes)) return decode_jpeg(bytes);
    if (is_png(bytes)) return decode_png(bytes);
    fail("neither a JPEG nor a PNG image");
}

Image read_image(const std::filesystem::path& path) {
    const auto file = MappedFile::open(path);
    try {
        return decode_image(file->bytes());
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

Image resize_short_side(const Image& image, int64_t short_side) {
    const int64_t shorter = std::min(image.width, image.height);
    if (shorter == short_side) return image;
    const auto scaled = [&](int64_t side) {
        return side == shorter ? short_side : std::max(short_side, side * short_side / shorter);
    };
    return resize_height(resize_width(image, scaled(image.width)), scaled(image.height));
}

Image center_crop(const Image& image, int64_t width, int64_t height) {
    require(image.width >= width && image.height >= height,
            "an image of {}x{} pixels is too small for {}x{} (width x height)", image.width, image.height,
            width, height);
    Image result{width, height, {}};
    const int64_t left = (image.width - width) / 2;
    const int64_t top = (image.height - height) / 2;
    for (int64_t y = top; y < top + height; ++y) {
        const auto row = image.pixels.begin() + 3 * (y * image.width + left);
        result.pixels.insert(result.pixels.end(), row, row + 3 * width);
    }
    return result;
}

Tensor to_tensor(const Image& image, int64_t channels, Layout layout, const Normalization& normalization) {
    require(channels == 1 || channels == 3, "images have 1 or 3 channels, the model expects {}", channels);
    const int64_t count = image.width * image.height;
    Tensor tensor(DType::f32, layout == Layout::nchw ? Shape{channels, image.height, image.width}
                                                     : Shape{image.height, image.width, channels});
    float* target = tensor.as_mutable<float>().data();
    const int64_t pixel_step = layout == Layout::nchw ? 1 : channels;
    const int64_t channel_step = layout == Layout::nchw ? count : 1;
    for (int64_t i = 0; i < count; ++i) {
        const uint8_t* rgb = image.pixels.data() + 3 * i;
        for (int64_t c = 0; c < channels; ++c) {
            const auto index = static_cast<size_t>(c);
            // ITU-R BT.601 luma, as JPEG itself defines it.
            const float value = channels == 3
                                    ? static_cast<float>(rgb[c])
                                    : std::round(0.299F * rgb[0] + 0.587F * rgb[1] + 0.114F * rgb[2]);
            target[i * pixel_step + c * channel_step] =
                (value * normalization.scale - normalization.mean[index]) / normalization.std[index];
        }
    }
    return tensor;
}

}  // namespace kilter
