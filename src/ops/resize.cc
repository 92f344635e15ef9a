// Resize: every axis on its own. An output coordinate is a weighted sum of a few input coordinates of the same axis.
// Coordinates are computed in float, as all runtimes do: rounding decides which neighbour "nearest" takes.
#include "ops/resize.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/fail.h"
#include "ops/numeric.h"
#include "ops/window.h"

namespace kilter {
namespace {

// How one axis is resized.
struct Axis {
    int64_t input = 1, output = 1;
    float scale = 1.0F;
    float roi_begin = 0.0F, roi_end = 1.0F;
};

std::string choice(const Attributes& attributes, std::string_view name,
                   std::initializer_list<std::string_view> allowed) {
    std::string value = attributes.get_string(name, *allowed.begin());
    require(std::ranges::find(allowed, value) != allowed.end(),
            "attribute '{}' must be one of {}, found '{}'", name, fmt::join(allowed, ", "), value);
    return value;
}

std::vector<size_t> resized_axes(const Attributes& attributes, size_t rank) {
    std::vector<size_t> axes;
    if (!attributes.has("axes"))
        for (size_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
    for (const int64_t axis : attributes.get_ints("axes")) {
        const auto normalized =
            static_cast<size_t>(normalize_axis(axis, static_cast<int64_t>(rank), "resized axis"));
        require(normalized < rank && std::ranges::find(axes, normalized) == axes.end(),
                "axis {} is resized twice", axis);
        axes.push_back(normalized);
    }
    return axes;
}

int64_t checked_extent(double extent) {
    require(extent >= 0 && extent <= static_cast<double>(kWindowLimit), "cannot resize to an extent of {}",
            extent);
    return static_cast<int64_t>(extent);
}

// Output extents and scales; `scales` or `sizes` is empty.
std::vector<Axis> plan(const Attributes& attributes, const Shape& x, std::span<const float> scales,
                       std::span<const int64_t> sizes) {
    const std::vector<size_t> axes = resized_axes(attributes, x.size());
    require(scales.empty() != sizes.empty(), "exactly one of scales and sizes must be given");
    const size_t given = scales.empty() ? sizes.size() : scales.size();
    require(given == axes.size(), "scales or sizes has {} entries for {} resized axes", given, axes.size());
    std::vector<Axis> result(x.size());
    for (size_t axis = 0; axis < x.size(); ++axis) result[axis].input = result[axis].output = x[axis];
    const std::string policy =
        choice(attributes, "keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"});
    float common = policy == "not_larger" ? std::numeric_limits<float>::infinity() : 0.0F;
    for (size_t i = 0; i < axes.size(); ++i) {
        Axis& axis = result[axes[i]];
        if (!scales.empty()) {
            axis.scale = scales[i];
            require(axis.scale > 0 && std::isfinite(axis.scale), "scale {} of axis {} is not positive",
                    axis.scale, axes[i]);
            axis.output = checked_extent(std::floor(static_cast<float>(axis.input) * axis.scale));
            continue;
        }
        require(sizes[i] >= 0 && sizes[i] <= kWindowLimit, "cannot resize axis {} to {}", axes[i], sizes[i]);
        axis.output = sizes[i];
        axis.scale = axis.input == 0 ? 1.0F : static_cast<float>(sizes[i]) / static_cast<float>(axis.input);
        common = policy == "not_larger" ? std::min(common, axis.scale) : std::max(common, axis.scale);
    }
    if (scales.empty() && policy != "stretch")
        for (const size_t index : axes) {
            Axis& axis = result[index];
            axis.scale = common;
            axis.output = checked_extent(std::floor(common * static_cast<float>(axis.input) + 0.5F));
        }
    for (const Axis& axis : result)
        require(axis.input > 0 || axis.output == 0, "cannot resize an empty axis to {}", axis.output);
    return result;
}

float original_coordinate(const std::string& mode, const Axis& axis, int64_t position) {
    const auto at = static_cast<float>(position);
    const auto input = static_cast<float>(axis.input);
    const auto output = static_cast<float>(axis.output);
    if (mode == "asymmetric") return at / axis.scale;
    if (mode == "align_corners") return axis.output == 1 ? 0.0F : at * (input - 1) / (output - 1);
    if (mode == "pytorch_half_pixel") return axis.output > 1 ? (at + 0.5F) / axis.scale - 0.5F : 0.0F;
    if (mode == "tf_crop_and_resize")
        return axis.output > 1 ? axis.roi_begin * (input - 1) +
                                     at * (axis.roi_end - axis.roi_begin) * (input - 1) / (output - 1)
                               : 0.5F * (axis.roi_begin + axis.roi_end) * (input - 1);
    const float coordinate = (at + 0.5F) / axis.scale - 0.5F;
    if (mode == "half_pixel") return coordinate;
    // half_pixel_symmetric keeps the centre when the exact output extent is fractional.
    const float adjustment = output / (axis.scale * input);
    return input / 2 * (1 - adjustment) + coordinate;
}

int64_t nearest(const std::string& mode, float coordinate) {
    if (mode == "floor") return static_cast<int64_t>(std::floor(coordinate));
    if (mode == "ceil") return static_cast<int64_t>(std::ceil(coordinate));
    if (mode == "round_prefer_floor") return static_cast<int64_t>(std::ceil(coordinate - 0.5F));
    return static_cast<int64_t>(std::floor(coordinate + 0.5F));
}

double linear_weight(double distance) { return std::max(1.0 - std::fabs(distance), 0.0); }

double cubic_weight(double distance, double a) {
    const double x = std::fabs(distance);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return ((x - 5) * x + 8) * x * a - 4 * a;
    return 0;
}

ResizeTaps taps_at(const Attributes& attributes, const Axis& axis, const std::string& transformation,
                   int64_t position) {
    ResizeTaps taps;
    float coordinate = original_coordinate(transformation, axis, position);
    if (transformation == "tf_crop_and_resize")
        taps.outside = !(coordinate >= 0 && coordinate <= static_cast<float>(axis.input - 1));
    // Regions come from data: keep what they do to coordinates within the reach of integers.
    const auto limit = static_cast<float>(kWindowLimit);
    coordinate = std::isnan(coordinate) ? 0.0F : std::clamp(coordinate, -limit, limit);
    const std::string mode = attributes.get_string("mode", "nearest");
    const auto inside = [&](int64_t index) { return std::clamp<int64_t>(index, 0, axis.input - 1); };
    if (mode == "nearest") {
        taps.entries.emplace_back(
            inside(nearest(attributes.get_string("nearest_mode", "round_prefer_floor"), coordinate)), 1.0);
        return taps;
    }
    const bool cubic = mode == "cubic";
    const bool antialias = attributes.get_int("antialias") != 0 && axis.scale < 1;
    const double stretch = antialias ? axis.scale : 1.0;  // a shrinking filter is widened by 1/scale
    const double a = attributes.get_float("cubic_coeff_a", -0.75F);
    // The border repeats unless it is excluded.
    const bool exclude_outside = attributes.get_int("exclude_outside") != 0;
    const double reach = (cubic ? 2.0 : 1.0) / stretch;
    const auto first = static_cast<int64_t>(std::floor(coordinate - reach)) + 1;
    const auto last = static_cast<int64_t>(std::ceil(coordinate + reach)) - 1;
    double sum = 0;
    for (int64_t index = first; index <= last; ++index) {
        if (exclude_outside && index != inside(index)) continue;
        const double distance = (static_cast<double>(index) - coordinate) * stretch;
        const double weight = cubic ? cubic_weight(distance, a) : linear_weight(distance);
        taps.entries.emplace_back(inside(index), weight);
        sum += weight;
    }
    if (taps.entries.empty() || sum == 0)
        taps.entries = {{inside(static_cast<int64_t>(coordinate)), sum = 1.0}};
    for (auto& [index, weight] : taps.entries) weight /= sum;
    return taps;
}

// Applies one axis: [outer, input, inner] → [outer, output, inner]. `outside` receives a mark for every output position
// that tf_crop_and_resize puts beyond the image.
Tensor resize_axis(const Tensor& x, size_t axis, const Attributes& attributes, const Axis& plan,
                   std::vector<bool>& outside) {
    Shape shape = x.shape();
    shape[axis] = plan.output;
    Tensor y = real_zeros(shape);
    if (y.size() == 0) return y;
    const std::string transformation = attributes.get_string("coordinate_transformation_mode", "half_pixel");
    const int64_t inner = extent(shape, axis + 1, shape.size());
    const int64_t outer = extent(shape, 0, axis);
    for (int64_t position = 0; position < plan.output; ++position) {
        const ResizeTaps taps = taps_at(attributes, plan, transformation, position);
        outside.push_back(taps.outside);
        for (int64_t block = 0; block < outer; ++block) {
            const double* source = x.as<double>().data() + block * plan.input * inner;
            double* target = y.as_mutable<double>().data() + (block * plan.output + position) * inner;
            for (const auto& [index, weight] : taps.entries)
                for (int64_t i = 0; i < inner; ++i) target[i] += weight * source[index * inner + i];
        }
    }
    return y;
}

// tf_crop_and_resize: what falls outside the image along any axis is the extrapolation value.
void extrapolate(Tensor& y, size_t axis, const std::vector<bool>& outside, double value) {
    if (std::ranges::find(outside, true) == outside.end()) return;
    const auto inner = static_cast<size_t>(extent(y.shape(), axis + 1, y.shape().size()));
    const std::span<double> values = y.as_mutable<double>();
    for (size_t i = 0; i < values.size(); ++i)
        if (outside[i / inner % outside.size()]) values[i] = value;
}

bool stays(const Axis& axis) {
    const bool cropped = axis.roi_begin != 0 || axis.roi_end != 1;
    return axis.scale == 1.0F && axis.output == axis.input && !cropped;
}

void check_attributes(const Attributes& attributes) {
    choice(attributes, "mode", {"nearest", "linear", "cubic"});
    choice(attributes, "nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
    choice(attributes, "keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"});
    choice(attributes, "coordinate_transformation_mode",
           {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
            "tf_crop_and_resize"});
}

std::vector<float> to_floats(const Tensor& tensor) {
    const std::vector<double> values = tensor.to_doubles();
    return {values.begin(), values.end()};
}

void infer(InferContext& context) {
    check_attributes(context.attributes());
    if (!context.shape(0)) return context.set_output(0, context.dtype(0));
    const Dims& x = *context.shape(0);
    Dims result(x.size());
    const Tensor* scales = context.constant(2);
    const std::optional<std::vector<int64_t>> sizes = context.ints(3);
    const bool use_scales = scales != nullptr && scales->size() > 0;
    const bool use_sizes = !use_scales && sizes && !sizes->empty();
    if (use_scales || use_sizes) {
        // An unknown extent is planned with a stand-in; only what does not depend on it is kept.
        const std::vector<float> factors = use_scales ? to_floats(*scales) : std::vector<float>();
        const std::vector<int64_t> extents = use_sizes ? *sizes : std::vector<int64_t>();
        const bool all_known = std::ranges::all_of(x, &Dim::known);
        Shape stand_in;
        for (const Dim& dim : x) stand_in.push_back(dim.known() ? dim.value : 1);
        const bool stretch =
            context.attributes().get_string("keep_aspect_ratio_policy", "stretch") == "stretch";
        if (!all_known && use_sizes && !stretch) return context.set_output(0, context.dtype(0), result);
        const std::vector<size_t> axes = resized_axes(context.attributes(), x.size());
        if (!all_known && use_scales)
            for (size_t axis = 0; axis < x.size(); ++axis)
                if (!x[axis].known()) stand_in[axis] = kWindowLimit >> 10;
        const std::vector<Axis> planned = plan(context.attributes(), stand_in, factors, extents);
        for (size_t axis = 0; axis < x.size(); ++axis) {
            const bool touched = std::ranges::find(axes, axis) != axes.end();
            if (!touched || (use_scales && planned[axis].scale == 1.0F))
                result[axis] = x[axis];
            else if (x[axis].known() || use_sizes)
                result[axis] = planned[axis].output;
        }
    }
    context.set_output(0, context.dtype(0), std::move(result));
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const Attributes& attributes = context.attributes();
    check_attributes(attributes);
    std::vector<float> scales;
    std::vector<int64_t> sizes;
    if (context.has_input(2)) scales = to_floats(context.input(2));
    if (context.has_input(3)) sizes = context.input(3).to_ints();
    std::vector<Axis> axes = plan(attributes, x.shape(), scales, sizes);
    const std::string transformation = attributes.get_string("coordinate_transformation_mode", "half_pixel");
    if (transformation == "tf_crop_and_resize") {
        const std::vector<size_t> touched = resized_axes(attributes, x.shape().size());
        const std::vector<float> roi = to_floats(needed(context, 1, "roi"));
        require(roi.size() == 2 * touched.size(), "roi must have {} entries, found {}", 2 * touched.size(),
                roi.size());
        for (size_t i = 0; i < touched.size(); ++i) {
            axes[touched[i]].roi_begin = roi[i];
            axes[touched[i]].roi_end = roi[touched.size() + i];
        }
    }
    const double extrapolation = attributes.get_float("extrapolation_value");
    Tensor y = to_reals(x);
    std::vector<std::pair<size_t, std::vector<bool>>> outside;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
        if (stays(axes[axis])) continue;
        outside.emplace_back(axis, std::vector<bool>());
        y = resize_axis(y, axis, attributes, axes[axis], outside.back().second);
    }
    if (y.same_storage(x)) y = y.clone();
    for (const auto& [axis, marks] : outside) extrapolate(y, axis, marks, extrapolation);
    if (is_integer(x.dtype())) {
        // Cubic weights overshoot; integers stop at their limits.
        const int width = bits(x.dtype());
        const double low = is_signed(x.dtype()) ? -std::ldexp(1.0, width - 1) : 0.0;
        const double high = std::ldexp(1.0, is_signed(x.dtype()) ? width - 1 : width) - 1;
        for (double& value : y.as_mutable<double>()) value = std::clamp(value, low, high);
    }
    store_reals(context, 0, x.dtype(), y);
}

KILTER_OP({.name = "Resize",
           .min_inputs = 1,
           .max_inputs = 4,
           .attributes = {{"antialias", AttributeKind::integer},
                          {"axes", AttributeKind::integers},
                          {"coordinate_transformation_mode", AttributeKind::text},
                          {"cubic_coeff_a", AttributeKind::real},
                          {"exclude_outside", AttributeKind::integer},
                          {"extrapolation_value", AttributeKind::real},
                          {"keep_aspect_ratio_policy", AttributeKind::text},
                          {"mode", AttributeKind::text},
                          {"nearest_mode", AttributeKind::text}},
           .infer = infer,
           .kernel = kernel});

}  // namespace

std::vector<std::optional<AxisTaps>> resize_taps(const Attributes& attributes, const Shape& x,
                                                 std::span<const float> scales,
                                                 std::span<const int64_t> sizes) {
    const std::vector<Axis> axes = plan(attributes, x, scales, sizes);
    const std::string transformation = attributes.get_string("coordinate_transformation_mode", "half_pixel");
    std::vector<std::optional<AxisTaps>> taps(axes.size());
    for (size_t axis = 0; axis < axes.size(); ++axis) {
        if (stays(axes[axis])) continue;
        taps[axis].emplace();
        for (int64_t i = 0; i < axes[axis].output; ++i)
            taps[axis]->push_back(taps_at(attributes, axes[axis], transformation, i));
    }
    return taps;
}

}  // namespace kilter
