// Transforms that change the size of an image.
#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "data/random.h"
#include "data/resize.h"
#include "data/transform_table.h"

namespace kilter {
namespace {

Interpolation as_interpolation(const Settings& settings, Interpolation fallback) {
    const Settings* value = settings.find("interpolation");
    if (!value) return fallback;
    const std::string& name = value->as_text();
    if (name == "nearest") return Interpolation::nearest;
    if (name == "bilinear" || name == "linear") return Interpolation::bilinear;
    if (name == "bicubic" || name == "cubic") return Interpolation::bicubic;
    if (name == "area" || name == "box") return Interpolation::area;
    value->reject("nearest, bilinear, bicubic or area");
}

// PyTorch's transforms work on Pillow images; those of MXNet and ONNX Runtime call OpenCV, those of TensorFlow agree with it.
Resampler as_resampler(const TransformSettings& from) {
    const Settings* value = from.settings.find("library");
    if (!value) return from.framework.empty() || from.pytorch() ? Resampler::pillow : Resampler::opencv;
    if (value->as_text() == "pillow") return Resampler::pillow;
    if (value->as_text() == "opencv") return Resampler::opencv;
    value->reject("pillow or opencv");
}

SampleFunction make_resize(const TransformSettings& from) {
    from.settings.allow_keys({"size", "interpolation", "keep_ratio", "library"});
    const Size size = as_size(from.settings.get("size"));
    const Settings& given = from.settings.get("size");
    const bool one_number = !given.is_list() || given.as_list().size() == 1;
    const bool keep_ratio = from.settings.get("keep_ratio", from.pytorch() && one_number);
    if (keep_ratio && !one_number) given.reject("one number, the short side, with keep_ratio");
    const Interpolation interpolation = as_interpolation(from.settings, Interpolation::bilinear);
    const Resampler resampler = as_resampler(from);
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        const Size target = keep_ratio ? with_short_side(image, size.height) : size;
        image = resize(image, target.height, target.width, interpolation, resampler);
    };
}

SampleFunction make_crop_resize(const TransformSettings& from) {
    const Settings& settings = from.settings;
    settings.allow_keys({"x", "y", "width", "height", "size", "interpolation", "library"});
    const int64_t left = settings.get("x").as_int();
    const int64_t top = settings.get("y").as_int();
    const Size part{settings.get("height").as_int(), settings.get("width").as_int()};
    const Size size = as_size(settings.get("size"));
    const Interpolation interpolation = as_interpolation(settings, Interpolation::bilinear);
    const Resampler resampler = as_resampler(from);
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        image = resize(crop(image, top, left, part), size.height, size.width, interpolation, resampler);
    };
}

// Ten tries at a part with an area and a ratio within the bounds; then the largest middle part with an allowed ratio.
SampleFunction make_random_resized_crop(const TransformSettings& from) {
    const Settings& settings = from.settings;
    settings.allow_keys({"size", "scale", "ratio", "interpolation", "library", "seed"});
    const auto bounds = [&](const char* key, double low, double high) {
        const Settings* value = settings.find(key);
        if (!value) return std::pair(low, high);
        const std::vector<double> numbers = value->as_numbers();
        if (numbers.size() != 2 || numbers[0] <= 0 || numbers[1] < numbers[0])
            value->reject("two positive numbers, the smaller first");
        return std::pair(numbers[0], numbers[1]);
    };
    const Size size = as_size(settings.get("size"));
    const auto scale = bounds("scale", 0.08, 1);
    const auto ratio = bounds("ratio", 3.0 / 4, 4.0 / 3);
    const Interpolation interpolation = as_interpolation(settings, Interpolation::bilinear);
    const Resampler resampler = as_resampler(from);
    const auto seed = static_cast<uint64_t>(settings.get("seed", 0));
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        const int64_t height = image.dim(0);
        const int64_t width = image.dim(1);
        Random random(seed, static_cast<uint64_t>(sample.index));
        Size part;
        int64_t top = 0;
        int64_t left = 0;
        for (int attempt = 0; attempt < 10 && part.width == 0; ++attempt) {
            const double area = static_cast<double>(height * width) *
                                (scale.first + random.uniform() * (scale.second - scale.first));
            const double shape = std::exp(
                std::log(ratio.first) + random.uniform() * (std::log(ratio.second) - std::log(ratio.first)));
            const Size drawn{std::llround(std::sqrt(area / shape)), std::llround(std::sqrt(area * shape))};
            if (drawn.width < 1 || drawn.height < 1 || drawn.width > width || drawn.height > height) continue;
            part = drawn;
            top = random.below(height - part.height + 1);
            left = random.below(width - part.width + 1);
        }
        if (part.width == 0) {
            const double own = static_cast<double>(width) / static_cast<double>(height);
            part = {height, width};
            if (own < ratio.first) part.height = std::llround(static_cast<double>(width) / ratio.first);
            if (own > ratio.second) part.width = std::llround(static_cast<double>(height) * ratio.second);
            top = (height - part.height) / 2;
            left = (width - part.width) / 2;
        }
        image = resize(crop(image, top, left, part), size.height, size.width, interpolation, resampler);
    };
}

// The short side becomes min_dim unless the long one would then exceed max_dim; padded to a max_dim square on demand.
SampleFunction make_resize_with_ratio(const TransformSettings& from) {
    const Settings& settings = from.settings;
    settings.allow_keys({"min_dim", "max_dim", "padding", "constant_value", "interpolation", "library"});
    const int64_t shortest = settings.get("min_dim", 800);
    const int64_t longest = settings.get("max_dim", 1365);
    require(shortest > 0 && longest >= shortest, "min_dim {} and max_dim {}: expected 0 < min_dim ≤ max_dim",
            shortest, longest);
    const bool padding = settings.get("padding", false);
    const double fill = settings.get("constant_value", 0.0);
    const Interpolation interpolation = as_interpolation(settings, Interpolation::bilinear);
    const Resampler resampler = as_resampler(from);
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        const auto height = static_cast<double>(image.dim(0));
        const auto width = static_cast<double>(image.dim(1));
        double scale = std::max(1.0, static_cast<double>(shortest) / std::min(height, width));
        if (std::round(std::max(height, width) * scale) > static_cast<double>(longest))
            scale = static_cast<double>(longest) / std::max(height, width);
        image = resize(image, std::llround(height * scale), std::llround(width * scale), interpolation,
                       resampler);
        if (padding)
            image = padded(image, (longest - image.dim(0)) / 2, (longest - image.dim(1)) / 2,
                           {longest, longest}, fill);
    };
}

// The usual preparation of the TensorFlow detection and MLPerf models: both sides grow by 100 / scale, a crop follows.
SampleFunction make_resize_with_aspect_ratio(const TransformSettings& from) {
    const Settings& settings = from.settings;
    settings.allow_keys({"height", "width", "scale", "interpolation", "library"});
    const double height = settings.get("height").as_number();
    const double width = settings.get("width").as_number();
    const double scale = settings.get("scale", 87.5);
    require(height >= 1 && width >= 1 && scale > 0, "height, width and scale must be positive");
    const auto new_height = static_cast<int64_t>(100 * height / scale);
    const auto new_width = static_cast<int64_t>(100 * width / scale);
    const Interpolation interpolation = as_interpolation(settings, Interpolation::area);
    const Resampler resampler = settings.has("library") ? as_resampler(from) : Resampler::opencv;
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        Size size{new_height, new_width};
        if (image.dim(0) > image.dim(1))
            size.height = new_height * image.dim(0) / image.dim(1);
        else
            size.width = new_width * image.dim(1) / image.dim(0);
        image = resize(image, size.height, size.width, interpolation, resampler);
    };
}

}  // namespace

void add_resizes(TransformTable& table) {
    table["Resize"] = make_resize;
    table["CropResize"] = make_crop_resize;
    table["RandomResizedCrop"] = make_random_resized_crop;
    table["ResizeWithRatio"] = make_resize_with_ratio;
    table["ResizeWithAspectRatio"] = make_resize_with_aspect_ratio;
}

Size as_size(const Settings& value) {
    const std::vector<int64_t> numbers = value.as_ints();
    const bool positive = std::ranges::all_of(numbers, [](int64_t n) { return n > 0 && n < (1 << 20); });
    if (numbers.empty() || numbers.size() > 2 || !positive)
        value.reject("a positive number or [height, width]");
    return {numbers.front(), numbers.back()};
}

Size with_short_side(const Tensor& image, int64_t side) {
    const int64_t height = image.dim(0);
    const int64_t width = image.dim(1);
    const int64_t shorter = std::max<int64_t>(std::min(height, width), 1);
    const auto scaled = [&](int64_t length) {
        return length == shorter ? side : std::max(side, length * side / shorter);
    };
    return {scaled(height), scaled(width)};
}

}  // namespace kilter
