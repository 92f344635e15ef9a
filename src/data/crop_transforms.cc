// Transforms that take a part of an image.
#include <cmath>
#include <cstring>

#include "base/fail.h"
#include "data/random.h"
#include "data/transform_table.h"

namespace kilter {
namespace {

SampleFunction make_center_crop(const TransformSettings& from) {
    from.settings.allow_keys({"size"});
    const Size size = as_size(from.settings.get("size"));
    if (!from.pytorch())
        return [=](Sample& sample) { image_of(sample) = center_crop(image_of(sample), size); };
    // torchvision rounds half a pixel to the even side, as Python's round() does.
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        const auto offset = [](int64_t outer, int64_t inner) {
            return std::llrint(static_cast<double>(outer - inner) / 2);
        };
        image = crop(image, offset(image.dim(0), size.height), offset(image.dim(1), size.width), size);
    };
}

SampleFunction make_random_crop(const TransformSettings& from) {
    from.settings.allow_keys({"size", "seed"});
    const Size size = as_size(from.settings.get("size"));
    const auto seed = static_cast<uint64_t>(from.settings.get("seed", 0));
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        require(image.dim(0) >= size.height && image.dim(1) >= size.width,
                "an image of {}x{} pixels is too small for a crop of {}x{} (height x width)", image.dim(0),
                image.dim(1), size.height, size.width);
        Random random(seed, static_cast<uint64_t>(sample.index));
        const int64_t top = random.below(image.dim(0) - size.height + 1);
        image = crop(image, top, random.below(image.dim(1) - size.width + 1), size);
    };
}

SampleFunction make_crop_to_bounding_box(const TransformSettings& from) {
    from.settings.allow_keys({"offset_height", "offset_width", "target_height", "target_width"});
    const auto number = [&](const char* key) { return from.settings.get(key).as_int(); };
    const int64_t top = number("offset_height");
    const int64_t left = number("offset_width");
    const Size size{number("target_height"), number("target_width")};
    return [=](Sample& sample) { image_of(sample) = crop(image_of(sample), top, left, size); };
}

// As EfficientNet is evaluated: the middle square that leaves crop_padding of size + crop_padding pixels around it.
SampleFunction make_padded_center_crop(const TransformSettings& from) {
    from.settings.allow_keys({"size", "crop_padding"});
    const Size size = as_size(from.settings.get("size"));
    if (size.height != size.width) from.settings.get("size").reject("one number: the crop is a square");
    const int64_t padding = from.settings.get("crop_padding", 0);
    require(padding >= 0, "crop_padding must not be negative");
    const double part = static_cast<double>(size.height) / static_cast<double>(size.height + padding);
    return [=](Sample& sample) {
        Tensor& image = image_of(sample);
        const int64_t height = image.dim(0);
        const int64_t width = image.dim(1);
        const auto side = static_cast<int64_t>(part * static_cast<double>(std::min(height, width)));
        image = crop(image, (height - side + 1) / 2, (width - side + 1) / 2, {side, side});
    };
}

}  // namespace

Tensor& first_input(Sample& sample) {
    require(!sample.inputs.empty(), "there is no input");
    return sample.inputs.front();
}

Tensor& image_of(Sample& sample) {
    require(!sample.inputs.empty(), "there is no image");
    Tensor& image = sample.inputs.front();
    const bool shaped = image.rank() == 3 && image.dim(2) <= 4 && image.size() > 0;
    if (!shaped || (image.dtype() != DType::u8 && image.dtype() != DType::f32))
        throw Error(fmt::format("expected an image, height x width x channels of u8 or f32, found {} {}",
                                name(image.dtype()), to_string(image.shape())),
                    "Resize, crops and flips come before ToTensor and Transpose");
    return image;
}

Tensor crop(const Tensor& image, int64_t top, int64_t left, Size size) {
    const bool fits = top >= 0 && left >= 0 && size.height > 0 && size.width > 0 && top <= image.dim(0) &&
                      left <= image.dim(1) && size.height <= image.dim(0) - top &&
                      size.width <= image.dim(1) - left;
    require(fits, "an image of {}x{} pixels has no part of {}x{} at row {}, column {} (height x width)",
            image.dim(0), image.dim(1), size.height, size.width, top, left);
    if (size.height == image.dim(0) && size.width == image.dim(1)) return image;
    Tensor result(image.dtype(), {size.height, size.width, image.dim(2)});
    const size_t pixel = static_cast<size_t>(bits(image.dtype()) / 8 * image.dim(2));
    const size_t row = pixel * static_cast<size_t>(size.width);
    for (int64_t y = 0; y < size.height; ++y)
        std::memcpy(static_cast<char*>(result.raw_mutable()) + static_cast<size_t>(y) * row,
                    static_cast<const char*>(image.raw()) +
                        static_cast<size_t>((top + y) * image.dim(1) + left) * pixel,
                    row);
    return result;
}

Tensor center_crop(const Tensor& image, Size size) {
    require(image.dim(0) >= size.height && image.dim(1) >= size.width,
            "an image of {}x{} pixels is too small for a crop of {}x{} (height x width)", image.dim(0),
            image.dim(1), size.height, size.width);
    return crop(image, (image.dim(0) - size.height) / 2, (image.dim(1) - size.width) / 2, size);
}

void add_crops(TransformTable& table) {
    table["CenterCrop"] = make_center_crop;
    table["RandomCrop"] = make_random_crop;
    table["CropToBoundingBox"] = make_crop_to_bounding_box;
    table["PaddedCenterCrop"] = make_padded_center_crop;
}

}  // namespace kilter
