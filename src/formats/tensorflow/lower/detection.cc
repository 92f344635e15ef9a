// What detectors do between and behind their convolutions: regions cut out of feature maps, and suppression of boxes.
#include <array>

#include "formats/tensorflow/lower/lowering.h"

namespace kilter::tensorflow {
namespace {

// Columns of a [n, 4] matrix, each [n, 1].
std::array<Value*, 4> columns(Lowering& l, Value* matrix) {
    std::array<Value*, 4> result{};
    for (int64_t i = 0; i < 4; ++i)
        result[static_cast<size_t>(i)] =
            l.emit("Slice", {matrix, l.add_ints({i}), l.add_ints({i + 1}), l.add_ints({1})});
    return result;
}

// One axis of the regions: where its samples lie in pixels, as RoiAlign takes begin and end, and which lie outside.
struct Axis {
    Value* begin = nullptr;
    Value* end = nullptr;
    Value* outside = nullptr;  // bool[n, count]
};

// TensorFlow puts the first and last sample on the borders of the region (a single one in its middle), in units of size - 1. RoiAlign puts
// each in the middle of a bin, and shifts everything by half a pixel. A region that ends at the border of the image lies outside or not by the
// last bit of TensorFlow's arithmetic: every step is rounded to float32 as there, which no rewrite may undo.
Axis sample_axis(Lowering& l, Value* low, Value* high, Value* size, int64_t count) {
    const auto number = [&](double value) { return l.add_scalar(value, DType::f64); };
    const auto rounded = [&](std::string_view op, Value* a, Value* b) {
        return l.cast(l.cast(l.emit(op, {a, b}), DType::f32), DType::f64);
    };
    low = l.cast(low, DType::f64);
    high = l.cast(high, DType::f64);
    Value* last = l.emit("Sub", {l.cast(size, DType::f64), number(1)});
    Value* bin = rounded("Mul", rounded("Sub", high, low), last);
    Value* first = nullptr;
    if (count > 1) {
        bin = rounded("Div", bin, number(static_cast<double>(count - 1)));
        first = rounded("Mul", low, last);
    } else {
        first = rounded("Mul", rounded("Mul", number(0.5), rounded("Add", low, high)), last);
    }
    std::vector<double> steps(static_cast<size_t>(count));
    for (size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<double>(i);
    Value* offsets = rounded("Mul", bin, l.add_constant(Tensor::of<double>({1, count}, steps)));
    Value* places = rounded("Add", first, offsets);
    Axis axis;
    axis.outside = l.emit("Or", {l.emit("Less", {places, number(0)}), l.emit("Greater", {places, last})});
    Value* begin = l.emit("Sub", {first, l.emit("Mul", {l.emit("Sub", {bin, number(1)}), number(0.5)})});
    axis.begin = l.cast(begin, DType::f32);
    axis.end =
        l.cast(l.emit("Add", {begin, l.emit("Mul", {bin, number(static_cast<double>(count))})}), DType::f32);
    return axis;
}

void lower_crop_and_resize(Lowering& l) {
    if (l.attributes().get_string("method", "bilinear") != "bilinear") not_lowered("it takes nearest pixels");
    const Ints crop = l.ints(3);
    if (crop.size() != 2 || crop[0] < 1 || crop[1] < 1) not_lowered("the size of the regions is not known");
    Value* x = l.channels_first(l.cast(l.input(0), DType::f32));
    Value* shape = l.cast(l.emit("Shape", {x}), DType::f32);
    const auto size = [&](int64_t axis) {
        return l.emit("Slice", {shape, l.add_ints({axis}), l.add_ints({axis + 1})});
    };
    const auto [top, left, bottom, right] = columns(l, l.input(1));
    const Axis rows = sample_axis(l, top, bottom, size(2), crop[0]);
    const Axis pixels = sample_axis(l, left, right, size(3), crop[1]);
    Value* regions = l.emit("Concat", {pixels.begin, rows.begin, pixels.end, rows.end},
                            attributes_of({{"axis", int64_t{1}}}));
    Value* y = l.emit("RoiAlign", {x, regions, l.as_int64(l.input(2))},
                      attributes_of({{"output_height", crop[0]},
                                     {"output_width", crop[1]},
                                     {"sampling_ratio", int64_t{1}},
                                     {"coordinate_transformation_mode", std::string("half_pixel")}}));
    l.name_main(y);
    Value* outside = l.emit("Or", {l.unsqueeze(rows.outside, {1, 3}), l.unsqueeze(pixels.outside, {1, 2})});
    const double fill = l.attributes().get_float("extrapolation_value");
    l.result(l.channels_last(l.emit("Where", {outside, l.add_scalar(fill, DType::f32), y})));
}

// Indices of the chosen boxes: i32[chosen].
Value* chosen_boxes(Lowering& l, Value* overlap, Value* score) {
    Value* boxes = l.unsqueeze(l.cast(l.input(0), DType::f32), {0});
    Value* scores = l.unsqueeze(l.cast(l.input(1), DType::f32), {0, 1});
    Value* most = l.reshape(l.as_int64(l.input(2)), {1});
    const auto one = [&](Value* number) {
        return number == nullptr ? nullptr : l.reshape(l.cast(number, DType::f32), {1});
    };
    Value* found = l.emit("NonMaxSuppression", {boxes, scores, most, one(overlap), one(score)});
    l.name_main(found);
    Value* column = l.emit("Slice", {found, l.add_ints({2}), l.add_ints({3}), l.add_ints({1})});
    return l.cast(l.reshape(column, {-1}), DType::i32);
}

void lower_suppression(Lowering& l) {
    Value* overlap =
        l.size() > 3 ? l.input(3) : l.add_scalar(l.attributes().get_float("iou_threshold", 0.5F), DType::f32);
    l.result(chosen_boxes(l, overlap, l.size() > 4 ? l.input(4) : nullptr));
}

// V4 can pad its result, V5 can lower the scores of boxes instead of dropping them; both also say how many there are.
void lower_counted_suppression(Lowering& l, bool with_scores) {
    if (l.attributes().get_bool("pad_to_max_output_size")) not_lowered("it pads its result");
    if (with_scores) {
        const Tensor* sigma = l.constant(l.input(5));
        if (sigma == nullptr || sigma->to_doubles().at(0) != 0) not_lowered("it lowers scores");
    }
    Value* chosen = chosen_boxes(l, l.input(3), l.input(4));
    l.result(chosen);
    if (with_scores && l.is_read(1)) l.result(l.emit("Gather", {l.input(1), l.as_int64(chosen)}), 1);
    const int count = with_scores ? 2 : 1;
    if (l.is_read(count)) l.result(l.reshape(l.cast(l.emit("Shape", {chosen}), DType::i32), {}), count);
}

constexpr std::array kDetectionRules{
    LowerRule{"CropAndResize", lower_crop_and_resize},
    LowerRule{"NonMaxSuppression", lower_suppression},
    LowerRule{"NonMaxSuppressionV2", lower_suppression},
    LowerRule{"NonMaxSuppressionV3", lower_suppression},
    LowerRule{"NonMaxSuppressionV4", [](Lowering& l) { lower_counted_suppression(l, false); }},
    LowerRule{"NonMaxSuppressionV5", [](Lowering& l) { lower_counted_suppression(l, true); }},
};

}  // namespace

std::span<const LowerRule> detection_rules() { return kDetectionRules; }

}  // namespace kilter::tensorflow
