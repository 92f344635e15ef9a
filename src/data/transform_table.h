// How the files with transforms tell which ones they hold: a name, and a function from settings to what is done to a sample.
#pragma once

#include <functional>
#include <map>

#include "kilter/base/settings.h"
#include "kilter/data/sample.h"

namespace kilter {

using SampleFunction = std::function<void(Sample&)>;

struct TransformSettings {
    const Settings& settings;
    std::string_view framework;

    bool pytorch() const { return framework.starts_with("pytorch"); }
};

using TransformTable =
    std::map<std::string, std::function<SampleFunction(const TransformSettings&)>, std::less<>>;

void add_resizes(TransformTable& table);
void add_crops(TransformTable& table);
void add_flips_and_pads(TransformTable& table);
void add_arithmetic(TransformTable& table);
void add_conversions(TransformTable& table);
void add_imagenet(TransformTable& table);

//! What transforms work on; throws Error when there is none.
Tensor& first_input(Sample& sample);
//! The image of a sample, its first input: [height, width, channels] of u8 or f32. Throws Error for other shapes.
Tensor& image_of(Sample& sample);

struct Size {
    int64_t height = 0, width = 0;
};
//! A positive whole number for a square, or [height, width].
Size as_size(const Settings& value);
//! Rows top … and columns left … of an image; throws Error when they are not all in it.
Tensor crop(const Tensor& image, int64_t top, int64_t left, Size size);
//! The middle of an image; what cannot be halved leaves one pixel more at the bottom and right.
Tensor center_crop(const Tensor& image, Size size);
//! The image with a border: its first pixel lies at row `top`, column `left` of `size`.
Tensor padded(const Tensor& image, int64_t top, int64_t left, Size size, double fill);
//! Columns in reverse.
Tensor mirrored(const Tensor& image);
//! How large an image is when its short side has `side` pixels.
Size with_short_side(const Tensor& image, int64_t side);
//! "float32" and "f32" mean the same.
DType as_dtype(const Settings& value);

}  // namespace kilter
