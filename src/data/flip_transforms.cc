// Transforms that mirror an image or put a border around it.
#include <cstring>

#include "base/fail.h"
#include "data/image.h"
#include "data/random.h"
#include "data/transform_table.h"

namespace kilter {
namespace {

Tensor upside_down(const Tensor& image) {
    Tensor result(image.dtype(), image.shape());
    const size_t row = image.bytes() / static_cast<size_t>(image.dim(0));
    for (int64_t y = 0; y < image.dim(0); ++y)
        std::memcpy(static_cast<char*>(result.raw_mutable()) + static_cast<size_t>(y) * row,
                    static_cast<const char*>(image.raw()) + static_cast<size_t>(image.dim(0) - 1 - y) * row,
                    row);
    return result;
}

SampleFunction make_flip(const TransformSettings& from, Tensor (*flip)(const Tensor&), uint64_t stream) {
    from.settings.allow_keys({"p", "seed"});
    const double probability = from.settings.get("p", 0.5);
    require(probability >= 0 && probability <= 1, "p must lie between 0 and 1, found {}", probability);
    const auto seed = static_cast<uint64_t>(from.settings.get("seed", 0)) ^ stream;
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        if (Random(seed, static_cast<uint64_t>(sample.index)).uniform() < probability) image = flip(image);
    };
}

// One number for all sides, [left and right, top and bottom], or [left, top, right, bottom], as in torchvision.
SampleFunction make_pad(const TransformSettings& from) {
    from.settings.allow_keys({"padding", "fill", "padding_mode"});
    if (from.settings.get("padding_mode", "constant") != "constant")
        from.settings.get("padding_mode").reject("constant, the only mode there is");
    const Settings& given = from.settings.get("padding");
    std::vector<int64_t> sides = given.as_ints();
    for (const int64_t side : sides)
        if (side < 0 || side > (1 << 20)) given.reject("pixels, not negative");
    if (sides.size() == 1) sides.resize(4, sides[0]);
    if (sides.size() == 2) sides = {sides[0], sides[1], sides[0], sides[1]};
    if (sides.size() != 4) given.reject("1, 2 or 4 numbers");
    const double fill = from.settings.get("fill", 0.0);
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        image = padded(image, sides[1], sides[0],
                       {image.dim(0) + sides[1] + sides[3], image.dim(1) + sides[0] + sides[2]}, fill);
    };
}

}  // namespace

Tensor padded(const Tensor& image, int64_t top, int64_t left, Size size, double fill) {
    require(size.height <= kMostPixels / size.width, "an image of {}x{} pixels is too large", size.height,
            size.width);
    Tensor result = Tensor::filled(image.dtype(), {size.height, size.width, image.dim(2)}, fill);
    const size_t row = image.bytes() / static_cast<size_t>(image.dim(0));
    const size_t pixel = row / static_cast<size_t>(image.dim(1));
    for (int64_t y = 0; y < image.dim(0); ++y)
        std::memcpy(static_cast<char*>(result.raw_mutable()) +
                        static_cast<size_t>((top + y) * size.width + left) * pixel,
                    static_cast<const char*>(image.raw()) + static_cast<size_t>(y) * row, row);
    return result;
}

Tensor mirrored(const Tensor& image) {
    Tensor result(image.dtype(), image.shape());
    const size_t pixel = static_cast<size_t>(bits(image.dtype()) / 8 * image.dim(2));
    const auto* source = static_cast<const char*>(image.raw());
    auto* target = static_cast<char*>(result.raw_mutable());
    for (int64_t y = 0; y < image.dim(0); ++y)
        for (int64_t x = 0; x < image.dim(1); ++x)
            std::memcpy(target + static_cast<size_t>(y * image.dim(1) + x) * pixel,
                        source + static_cast<size_t>((y + 1) * image.dim(1) - 1 - x) * pixel, pixel);
    return result;
}

void add_flips_and_pads(TransformTable& table) {
    table["RandomHorizontalFlip"] = [](const TransformSettings& from) {
        return make_flip(from, mirrored, 0);
    };
    table["RandomVerticalFlip"] = [](const TransformSettings& from) {
        return make_flip(from, upside_down, 1);
    };
    table["Pad"] = make_pad;
}

}  // namespace kilter
