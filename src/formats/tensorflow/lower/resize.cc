// Resizing of images: TensorFlow has three rules for which input pixels an output pixel lies between.
#include <array>

#include "formats/tensorflow/lower/lowering.h"

namespace kilter::tensorflow {
namespace {

void lower_resize(Lowering& l, std::string mode) {
    const bool align = l.attributes().get_bool("align_corners");
    const bool half = l.attributes().get_bool("half_pixel_centers");
    Attributes attributes = attributes_of({{"axes", Ints{2, 3}}});
    attributes.set("coordinate_transformation_mode", std::string(align  ? "align_corners"
                                                                 : half ? "half_pixel"
                                                                        : "asymmetric"));
    Value* x = l.input(0);
    if (mode == "nearest")
        // Of the two nearest pixels the later one wins; without centres it is the one before.
        attributes.set("nearest_mode", std::string(align || half ? "round_prefer_ceil" : "floor"));
    else
        x = l.cast(x, DType::f32);
    attributes.set("mode", std::move(mode));
    Value* y = l.emit("Resize", {l.channels_first(x), nullptr, nullptr, l.as_int64(l.input(1))},
                      std::move(attributes));
    l.name_main(y);
    l.result(l.channels_last(y));
}

constexpr std::array kResizeRules{
    LowerRule{"ResizeBilinear", [](Lowering& l) { lower_resize(l, "linear"); }},
    LowerRule{"ResizeNearestNeighbor", [](Lowering& l) { lower_resize(l, "nearest"); }},
};

}  // namespace

std::span<const LowerRule> resize_rules() { return kResizeRules; }

}  // namespace kilter::tensorflow
