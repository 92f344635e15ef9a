// Images made larger or smaller.
#include <array>

#include "formats/mxnet/lower/lowering.h"

namespace kilter::mxnet {
namespace {

void lower_up_sampling(Lowering& l) {
    const Parameters parameters = l.parameters();
    if (parameters.text("sample_type") != "nearest" || l.size() != 1)
        not_lowered("other than nearest neighbours");
    const auto scale = static_cast<float>(parameters.integer("scale", 1));
    l.result(l.emit("Resize",
                    {l.input(), nullptr, l.add_constant(Tensor::of<float>({4}, {1, 1, scale, scale}))},
                    attributes_of({{"mode", std::string("nearest")},
                                   {"coordinate_transformation_mode", std::string("asymmetric")},
                                   {"nearest_mode", std::string("floor")}})));
}

// Height and width times factors, without the fraction: the ratio of the sizes is then another than the factor, and MXNet
// goes by the sizes.
Value* scaled_size(Lowering& l, Value* x) {
    const Parameters parameters = l.parameters();
    const std::array factors{static_cast<float>(parameters.real("scale_height", 1)),
                             static_cast<float>(parameters.real("scale_width", 1))};
    if (x->type.shape && x->type.shape->size() == 4) {
        const Dims& dims = *x->type.shape;
        const auto side = [&](size_t i) {
            return static_cast<int64_t>(factors[i] * static_cast<float>(dims[i + 2].value));
        };
        if (dims[2].known() && dims[3].known()) return l.add_ints({side(0), side(1)});
    }
    Value* sides = l.cast(l.emit("Slice", {l.shape_of(x), l.add_ints({2}), l.add_ints({4})}), DType::f32);
    Value* scaled = l.emit("Mul", {sides, l.add_constant(Tensor::of<float>({2}, {factors[0], factors[1]}))});
    return l.cast(scaled, DType::i64);
}

void lower_bilinear(Lowering& l) {
    const Parameters parameters = l.parameters();
    const bool corners = parameters.flag("align_corners", true);
    // A side of one element is the first one in both modes, which tells PyTorch's kind of half pixels from the plain one.
    const Attributes attributes = attributes_of(
        {{"mode", std::string("linear")},
         {"coordinate_transformation_mode", std::string(corners ? "align_corners" : "pytorch_half_pixel")}});
    Value* x = l.input();
    if (l.size() > 1 || parameters.text("mode", "size") == "like") {
        Value* size = l.emit("Concat",
                             {l.emit("Slice", {l.shape_of(x), l.add_ints({0}), l.add_ints({2})}),
                              l.emit("Slice", {l.shape_of(l.input(1)), l.add_ints({2}), l.add_ints({4})})},
                             attributes_of({{"axis", int64_t{0}}}));
        return l.result(l.emit("Resize", {x, nullptr, nullptr, size}, attributes));
    }
    if (parameters.text("mode", "size") != "size") not_lowered("mode {}", parameters.text("mode"));
    Value* front = l.emit("Slice", {l.shape_of(x), l.add_ints({0}), l.add_ints({2})});
    Value* back = parameters.has("scale_height")
                      ? scaled_size(l, x)
                      : l.add_ints({parameters.integer("height", 1), parameters.integer("width", 1)});
    Value* size = l.emit("Concat", {front, back}, attributes_of({{"axis", int64_t{0}}}));
    l.result(l.emit("Resize", {x, nullptr, nullptr, size}, attributes));
}

void lower_depth_to_space(Lowering& l, std::string_view op) {
    l.result(
        l.emit(op, {l.input()}, attributes_of({{"blocksize", l.parameters().integer("block_size", 1)}})));
}

constexpr LowerRule kResizeRules[] = {
    {"UpSampling", lower_up_sampling},
    {"_contrib_BilinearResize2D", lower_bilinear},
    {"depth_to_space", [](Lowering& l) { lower_depth_to_space(l, "DepthToSpace"); }},
    {"space_to_depth", [](Lowering& l) { lower_depth_to_space(l, "SpaceToDepth"); }},
};

}  // namespace

std::span<const LowerRule> resize_rules() { return kResizeRules; }

}  // namespace kilter::mxnet
