// MaxRoiPool: the maxima of a grid of bins over each region of interest.
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"
#include "ops/window.h"

namespace kilter::max_roi_pool_op {

Dims roi_dims(const Attributes& attributes, const Dims& x, const std::optional<Dims>& rois) {
    const std::vector<int64_t> pooled = attributes.get_ints("pooled_shape");
    require(pooled.size() == 2, "attribute 'pooled_shape' must have 2 entries, found {}", pooled.size());
    for (const int64_t extent : pooled)
        require(extent >= 1 && extent <= kWindowLimit, "attribute 'pooled_shape' holds {}", extent);
    require(x.size() == 4, "the input must have shape [N, C, H, W], found {}", to_string(x));
    require(!rois || (rois->size() == 2 && agree((*rois)[1], 5)),
            "the regions must have shape [count, 5], found {}", rois ? to_string(*rois) : "");
    return {rois ? (*rois)[0] : Dim(), x[1], pooled[0], pooled[1]};
}

void infer(InferContext& context) {
    if (!context.shape(0)) return context.set_output(0, context.dtype(0));
    context.set_output(0, context.dtype(0),
                       roi_dims(context.attributes(), *context.shape(0), context.shape(1)));
}

// Rounded coordinate, kept where integer arithmetic is safe.
int64_t rounded(double coordinate) {
    const auto limit = static_cast<double>(kWindowLimit);
    return std::isnan(coordinate) ? 0
                                  : static_cast<int64_t>(std::clamp(std::round(coordinate), -limit, limit));
}

// The elements of bin `index` of `bins` along one axis of a region [first, first + length).
Range bin(int64_t index, int64_t bins, int64_t first, int64_t length, int64_t extent) {
    const float size = static_cast<float>(length) / static_cast<float>(bins);
    const auto begin = static_cast<int64_t>(std::floor(static_cast<float>(index) * size)) + first;
    const auto end = static_cast<int64_t>(std::ceil(static_cast<float>(index + 1) * size)) + first;
    return {std::clamp<int64_t>(begin, 0, extent), std::clamp<int64_t>(end, 0, extent)};
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const Tensor rois = needed(context, 1, "the regions").converted(DType::f32);
    const Dims dims = roi_dims(context.attributes(), to_dims(x.shape()), to_dims(rois.shape()));
    Tensor y = real_zeros(ValueType(DType::f64, dims).static_shape());
    const float scale = context.attributes().get_float("spatial_scale", 1.0F);
    const Tensor values = to_reals(x);
    const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
    double* target = y.as_mutable<double>().data();
    for (int64_t region = 0; region < y.dim(0); ++region) {
        const float* roi = rois.as<float>().data() + region * 5;
        const int64_t image = rounded(roi[0]);
        require(image >= 0 && image < x.dim(0), "region {} names image {} of {}", region, image, x.dim(0));
        const int64_t left = rounded(roi[1] * scale), top = rounded(roi[2] * scale);
        const int64_t region_width = std::max<int64_t>(rounded(roi[3] * scale) - left + 1, 1);
        const int64_t region_height = std::max<int64_t>(rounded(roi[4] * scale) - top + 1, 1);
        for (int64_t channel = 0; channel < channels; ++channel) {
            const double* plane = values.as<double>().data() + (image * channels + channel) * height * width;
            for (int64_t i = 0; i < y.dim(2); ++i)
                for (int64_t j = 0; j < y.dim(3); ++j, ++target) {
                    const Range rows = bin(i, y.dim(2), top, region_height, height);
                    const Range columns = bin(j, y.dim(3), left, region_width, width);
                    if (rows.begin >= rows.end || columns.begin >= columns.end)
                        continue;  // an empty bin is zero
                    *target = plane[rows.begin * width + columns.begin];
                    for (int64_t row = rows.begin; row < rows.end; ++row)
                        for (int64_t column = columns.begin; column < columns.end; ++column)
                            *target = std::max(*target, plane[row * width + column]);
                }
        }
    }
    store_reals(context, 0, x.dtype(), y);
}

KILTER_OP({.name = "MaxRoiPool",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"pooled_shape", AttributeKind::integers, true},
                          {"spatial_scale", AttributeKind::real}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::max_roi_pool_op
