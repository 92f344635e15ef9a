// The two preparations that the TensorFlow model zoo uses for ImageNet, each in one transform.
#include <algorithm>

#include "base/fail.h"
#include "data/normalize.h"
#include "data/random.h"
#include "data/resize.h"
#include "data/transform_table.h"

namespace kilter {
namespace {

struct Finish {
    Normalization mean, scale;  // one after the other: (x - mean) · scale

    explicit Finish(const Settings& settings) {
        if (const Settings* value = settings.find("mean_value")) {
            const std::vector<double> numbers = value->as_numbers();
            if (numbers.size() != 1 && numbers.size() != 3) value->reject("1 or 3 numbers");
            mean.mean.assign(numbers.begin(), numbers.end());
        }
        scale.scale = static_cast<float>(settings.get("scale", 1.0));
    }
    Tensor operator()(const Tensor& image) const { return normalize(normalize(image, 2, mean), -1, scale); }
};

SampleFunction make_resize_crop_imagenet(const TransformSettings& from) {
    const Settings& settings = from.settings;
    settings.allow_keys({"height", "width", "random_crop", "resize_side", "random_flip_left_right",
                         "mean_value", "scale", "data_format", "subpixels", "seed"});
    const Size size{settings.get("height").as_int(), settings.get("width").as_int()};
    const int64_t side = settings.get("resize_side", 256);
    require(size.height > 0 && size.width > 0 && side >= std::max(size.height, size.width),
            "a short side of {} leaves no crop of {}x{} (height x width)", side, size.height, size.width);
    const bool random_crop = settings.get("random_crop", false);
    const bool random_flip = settings.get("random_flip_left_right", false);
    const std::string format = settings.get("data_format", "channels_last");
    if (format != "channels_last" && format != "channels_first")
        settings.get("data_format").reject("channels_last or channels_first");
    const std::string order = settings.get("subpixels", "RGB");
    if (order != "RGB" && order != "BGR") settings.get("subpixels").reject("RGB or BGR");
    const auto seed = static_cast<uint64_t>(settings.get("seed", 0));
    const Finish finish(settings);
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        Random random(seed, static_cast<uint64_t>(sample.index));
        const Size scaled = with_short_side(image, side);
        image = resize(image.converted(DType::f32), scaled.height, scaled.width, Interpolation::bilinear,
                       Resampler::opencv);
        if (random_crop) {
            const int64_t top = random.below(scaled.height - size.height + 1);
            image = crop(image, top, random.below(scaled.width - size.width + 1), size);
        } else {
            image = center_crop(image, size);
        }
        if (random_flip && random.uniform() < 0.5) image = mirrored(image);
        if (order == "BGR") {
            image = image.clone();
            const std::span<float> values = image.as_mutable<float>();
            for (size_t i = 0; i + 2 < values.size(); i += 3) std::swap(values[i], values[i + 2]);
        }
        image = finish(image);
        if (format == "channels_first") image = to_planes(image);
    };
}

SampleFunction make_bilinear_imagenet(const TransformSettings& from) {
    const Settings& settings = from.settings;
    settings.allow_keys({"height", "width", "central_fraction", "mean_value", "scale"});
    const Size size{settings.get("height").as_int(), settings.get("width").as_int()};
    require(size.height > 0 && size.width > 0, "height and width must be positive");
    const double fraction = settings.get("central_fraction", 0.875);
    require(fraction > 0 && fraction <= 1, "central_fraction must lie in 0 … 1, found {}", fraction);
    const Finish finish(settings);
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        if (image.dtype() == DType::u8) image = normalize(image, -1, {1.0F / 255, {}, {}});
        const auto margin = [&](int64_t length) {
            return static_cast<int64_t>(
                (static_cast<double>(length) - static_cast<double>(length) * fraction) / 2);
        };
        const int64_t top = margin(image.dim(0));
        const int64_t left = margin(image.dim(1));
        image = crop(image, top, left, {image.dim(0) - 2 * top, image.dim(1) - 2 * left});
        image = resize(image, size.height, size.width, Interpolation::bilinear, Resampler::opencv);
        image = finish(normalize(image, -1, {2, {1}, {}}));  // (x - 0.5) · 2
    };
}

}  // namespace

void add_imagenet(TransformTable& table) {
    table["ResizeCropImagenet"] = make_resize_crop_imagenet;
    table["BilinearImagenet"] = make_bilinear_imagenet;
}

}  // namespace kilter
