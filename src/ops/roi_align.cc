// RoiAlign: bilinear samples on a grid in every bin of a region, reduced to their mean or maximum.
#include <array>
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"
#include "ops/window.h"

namespace kilter::roi_align_op {

// More samples than this along one axis of a bin means the region is nonsense.
constexpr int64_t kSampleLimit = 1 << 12;

Dims roi_dims(const Attributes& attributes, const Dims& x, const std::optional<Dims>& rois,
              const std::optional<Dims>& images) {
    const int64_t height = attributes.get_int("output_height", 1);
    const int64_t width = attributes.get_int("output_width", 1);
    require(height >= 1 && width >= 1 && height <= kWindowLimit && width <= kWindowLimit,
            "output_height {} and output_width {} must be positive", height, width);
    require(x.size() == 4, "the input must have shape [N, C, H, W], found {}", to_string(x));
    require(!rois || (rois->size() == 2 && agree((*rois)[1], 4)),
            "the regions must have shape [count, 4], found {}", rois ? to_string(*rois) : "");
    const Dim count = rois ? (*rois)[0] : Dim();
    require_vector(images, count, "the batch indices");
    return {count, x[1], height, width};
}

void infer(InferContext& context) {
    if (!context.shape(0)) return context.set_output(0, context.dtype(0));
    context.set_output(0, context.dtype(0),
                       roi_dims(context.attributes(), *context.shape(0), context.shape(1), context.shape(2)));
}

// The four neighbours of a point and their weights; all weights are zero for a point outside the image.
struct Sample {
    std::array<int64_t, 4> index{};
    std::array<double, 4> weight{};
};

Sample sample_at(double y, double x, int64_t height, int64_t width) {
    Sample sample;
    // The negation catches NaN as well.
    if (!(y >= -1.0 && y <= static_cast<double>(height) && x >= -1.0 && x <= static_cast<double>(width)))
        return sample;
    const auto split = [](double at, int64_t extent, int64_t& low, int64_t& high) {
        at = std::max(at, 0.0);
        low = std::min(static_cast<int64_t>(at), extent - 1);
        high = std::min(low + 1, extent - 1);
        return low == extent - 1 ? 0.0 : at - static_cast<double>(low);
    };
    int64_t top = 0, bottom = 0, left = 0, right = 0;
    const double down = split(y, height, top, bottom);
    const double across = split(x, width, left, right);
    sample.index = {top * width + left, top * width + right, bottom * width + left, bottom * width + right};
    sample.weight = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across};
    return sample;
}

struct Region {
    double top, left, bin_height, bin_width;
    int64_t rows, columns;  // samples per bin
};

int64_t samples_per_bin(int64_t sampling_ratio, double bin_size) {
    const double count = sampling_ratio > 0 ? static_cast<double>(sampling_ratio) : std::ceil(bin_size);
    require(count <= static_cast<double>(kSampleLimit),
            "a region of interest needs {} samples per bin, more than {}", count, kSampleLimit);
    return count >= 1 ? static_cast<int64_t>(count) : 0;
}

Region region_of(const double* roi, const Attributes& attributes, int64_t output_height,
                 int64_t output_width) {
    const std::string mode = attributes.get_string("coordinate_transformation_mode", "half_pixel");
    require(mode == "half_pixel" || mode == "output_half_pixel",
            "attribute 'coordinate_transformation_mode' must be half_pixel or output_half_pixel, found '{}'",
            mode);
    const double scale = attributes.get_float("spatial_scale", 1.0F);
    const double shift = mode == "half_pixel" ? 0.5 : 0.0;
    Region region{};
    region.left = roi[0] * scale - shift;
    region.top = roi[1] * scale - shift;
    double width = roi[2] * scale - shift - region.left;
    double height = roi[3] * scale - shift - region.top;
    if (mode == "output_half_pixel") {  // older detectors never let a region become smaller than one pixel
        width = std::max(width, 1.0);
        height = std::max(height, 1.0);
    }
    region.bin_height = height / static_cast<double>(output_height);
    region.bin_width = width / static_cast<double>(output_width);
    const int64_t ratio = attributes.get_int("sampling_ratio");
    require(ratio >= 0, "attribute 'sampling_ratio' must not be negative, found {}", ratio);
    region.rows = samples_per_bin(ratio, region.bin_height);
    region.columns = samples_per_bin(ratio, region.bin_width);
    return region;
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const Tensor rois = to_reals(needed(context, 1, "the regions"));
    const std::vector<int64_t> images = needed(context, 2, "the batch indices").to_ints();
    const Attributes& attributes = context.attributes();
    const Dims dims =
        roi_dims(attributes, to_dims(x.shape()), to_dims(rois.shape()), optional_dims(context, 2));
    const std::string mode = attributes.get_string("mode", "avg");
    require(mode == "avg" || mode == "max", "attribute 'mode' must be avg or max, found '{}'", mode);
    const bool average = mode == "avg";
    Tensor y = real_zeros(ValueType(DType::f64, dims).static_shape());
    const Tensor values = to_reals(x);
    const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
    require(y.size() == 0 || height * width > 0, "the input {} has no elements to pool",
            to_string(x.shape()));
    const int64_t rows = y.dim(2), columns = y.dim(3);
    for (int64_t index = 0; index < y.dim(0); ++index) {
        const int64_t image = images[static_cast<size_t>(index)];
        require(image >= 0 && image < x.dim(0), "region {} names image {} of {}", index, image, x.dim(0));
        const Region region = region_of(rois.as<double>().data() + index * 4, attributes, rows, columns);
        const auto count = static_cast<double>(std::max<int64_t>(region.rows * region.columns, 1));
        for (int64_t bin = 0; bin < rows * columns; ++bin)
            for (int64_t point = 0; point < region.rows * region.columns; ++point) {
                const double down =
                    static_cast<double>(bin / columns) +
                    (static_cast<double>(point / region.columns) + 0.5) / static_cast<double>(region.rows);
                const double across =
                    static_cast<double>(bin % columns) +
                    (static_cast<double>(point % region.columns) + 0.5) / static_cast<double>(region.columns);
                const Sample sample = sample_at(region.top + down * region.bin_height,
                                                region.left + across * region.bin_width, height, width);
                for (int64_t channel = 0; channel < channels; ++channel) {
                    const double* plane =
                        values.as<double>().data() + (image * channels + channel) * height * width;
                    double& result = y.as_mutable<double>()[static_cast<size_t>(
                        (index * channels + channel) * rows * columns + bin)];
                    std::array<double, 4> parts{};
                    for (size_t i = 0; i < 4; ++i) parts[i] = sample.weight[i] * plane[sample.index[i]];
                    if (average) {
                        result += (parts[0] + parts[1] + parts[2] + parts[3]) / count;
                    } else {
                        // ONNX takes the maximum over the weighted neighbours, not over the interpolated samples.
                        const double largest = *std::ranges::max_element(parts);
                        result = point == 0 ? largest : std::max(result, largest);
                    }
                }
            }
    }
    store_reals(context, 0, x.dtype(), y);
}

KILTER_OP({.name = "RoiAlign",
           .min_inputs = 3,
           .max_inputs = 3,
           .attributes = {{"coordinate_transformation_mode", AttributeKind::text},
                          {"mode", AttributeKind::text},
                          {"output_height", AttributeKind::integer},
                          {"output_width", AttributeKind::integer},
                          {"sampling_ratio", AttributeKind::integer},
                          {"spatial_scale", AttributeKind::real}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::roi_align_op
