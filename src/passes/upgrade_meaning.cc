// Upgrade rules of operators whose name, defaults or meaning changed.
#include <algorithm>
#include <array>
#include <numeric>

#include "base/fail.h"
#include "ops/op.h"
#include "passes/upgrade_opset.h"

namespace kilter {
namespace {

// Before opset 7 the second operand lines up with the first from `axis` on: trailing dimensions of one make
// that explicit.
Value* with_trailing_ones(Upgrade& u, size_t input, int64_t count) {
    if (count <= 0) return u.node().input(input);
    std::vector<int64_t> axes(static_cast<size_t>(count));
    std::iota(axes.begin(), axes.end(), u.rank(input));
    return u.add("Unsqueeze", {u.node().input(input), u.integers("axes", axes)});
}

}  // namespace

// Before opset 13: the tensor is seen as a matrix of everything before `axis` by everything from it on.
void upgrade_softmax(Upgrade& u) {
    const int64_t given = u.attributes().get_int("axis", 1);
    Value* x = u.node().input(0);
    require(x != nullptr, "the input is missing");
    const int rank = u.rank(0);
    if (given == -1) {
        u.attributes().set("axis", int64_t{-1});
        return;
    }
    if (rank >= 0) {
        const int64_t axis = rank == 0 ? 0 : normalize_axis(given, rank);
        const Dims& dims = *x->type.shape;
        const bool alone = std::all_of(dims.begin() + std::min<int64_t>(axis + 1, rank), dims.end(),
                                       [](const Dim& dim) { return dim.value == 1; });
        if (alone) {
            u.attributes().set("axis", axis);
            return;
        }
    }
    Value* shape = x->type.is_static() ? u.integers("shape", x->type.static_shape()) : u.add("Shape", {x});
    Attributes flatten;
    flatten.set("axis", given);
    Attributes last;
    last.set("axis", int64_t{-1});
    Value* matrix = u.add("Flatten", {x}, std::move(flatten));
    Value* result = u.add(u.node().op(), {matrix}, std::move(last));
    u.finish("Reshape", {result, shape});
}

void upgrade_upsample(Upgrade& u) {
    Value* scales = u.node().input(1);
    if (u.attributes().has("height_scale")) {
        scales = u.constant("scales", Tensor::of<float>({4}, {1, 1, u.attributes().get_float("height_scale"),
                                                              u.attributes().get_float("width_scale")}));
    } else if (u.attributes().has("scales")) {
        const std::vector<float> values = u.attributes().get_floats("scales");
        scales = u.constant("scales", Tensor::of<float>({static_cast<int64_t>(values.size())}, values));
    }
    require(scales != nullptr, "the scales are missing");
    std::string mode = u.attributes().get_string("mode", "nearest");
    if (mode == "bilinear") mode = "linear";
    Attributes attributes;
    attributes.set("mode", std::move(mode));
    attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
    attributes.set("nearest_mode", std::string("floor"));
    u.finish("Resize", {u.node().input(0), nullptr, scales}, std::move(attributes));
}

void upgrade_resize(Upgrade& u) {
    if (u.opset() < 11) {
        u.attributes().set("coordinate_transformation_mode", std::string("asymmetric"));
        u.attributes().set("nearest_mode", std::string("floor"));
        u.graph().set_inputs(u.node(), {u.node().input(0), nullptr, u.node().input(1)});
    }
    // Where `roi` and `scales` were required, an empty tensor said that they are not used.
    for (size_t index = 1; index <= 3; ++index)
        if (const Tensor* tensor = u.constant(index); tensor != nullptr && tensor->size() == 0)
            u.graph().set_input(u.node(), index, nullptr);
}

// Before opset 21 scale and bias have one entry per group, since then one per channel.
void upgrade_group_normalization(Upgrade& u) {
    const int64_t groups = u.attributes().get_int("num_groups", 1);
    require(groups > 0, "num_groups must be positive, found {}", groups);
    Value* x = u.node().input(0);
    require(x != nullptr && u.node().input(1) != nullptr && u.node().input(2) != nullptr, "needs 3 inputs");
    Value* repeats = nullptr;
    const std::optional<Dims>& shape = x->type.shape;
    if (shape && shape->size() > 1 && (*shape)[1].known()) {
        repeats = u.integers("repeats", {1, (*shape)[1].value / groups});
    } else {
        Attributes channel_axis;
        channel_axis.set("start", int64_t{1});
        channel_axis.set("end", int64_t{2});
        Attributes rows;
        rows.set("axis", int64_t{0});
        Value* channels = u.add("Shape", {x}, std::move(channel_axis));
        Value* each = u.add("Div", {channels, u.integers("groups", {groups})});
        repeats = u.add("Concat", {u.integers("one", {1}), each}, std::move(rows));
    }
    for (const size_t index : {1U, 2U}) {
        Value* column = u.add("Unsqueeze", {u.node().input(index), u.integers("axes", {1})});
        Value* table = u.add("Expand", {column, repeats});
        u.graph().set_input(u.node(), index, u.add("Reshape", {table, u.integers("shape", {-1})}));
    }
}

void upgrade_batch_normalization(Upgrade& u) {
    require(u.opset() >= 9 || u.attributes().get_int("spatial", 1) != 0,
            "the form with spatial=0 is not supported");
    u.attributes().erase("spatial");
    u.attributes().erase("is_test");
    const auto outputs = u.node().outputs();
    if (outputs.size() <= 1) return;
    for (Value* extra : std::vector<Value*>(outputs.begin() + 1, outputs.end())) {
        if (extra == nullptr) continue;
        require(extra->users().empty() && !u.graph().is_output(extra),
                "output '{}' asks for training mode, but kilter runs inference only", extra->name());
    }
    const auto inputs = u.node().inputs();
    u.finish("BatchNormalization", {inputs.begin(), inputs.end()}, u.attributes());
}

void upgrade_binary(Upgrade& u) {
    const bool broadcast = u.attributes().get_int("broadcast", 0) != 0;
    if (broadcast && u.attributes().has("axis")) {
        const int a = u.rank(0);
        const int b = u.rank(1);
        require(a >= 0 && b >= 0, "broadcasting along an axis needs inputs of known rank");
        const int64_t axis = normalize_axis(u.attributes().get_int("axis"), a);
        u.graph().set_input(u.node(), 1, with_trailing_ones(u, 1, a - axis - b));
    }
    u.attributes().erase("broadcast");
    u.attributes().erase("axis");
}

void upgrade_prelu(Upgrade& u) {
    const Value* slope = u.node().input(1);
    const bool scalar =
        slope != nullptr && slope->type.is_static() && element_count(slope->type.static_shape()) == 1;
    if (scalar || u.rank(1) != 1 || u.rank(0) < 3) return;
    u.graph().set_input(u.node(), 1, with_trailing_ones(u, 1, u.rank(0) - 2));
}

void upgrade_gemm(Upgrade& u) { u.attributes().erase("broadcast"); }

void upgrade_cast(Upgrade& u) {
    // ONNX element types by number, as opset 1 spells them.
    constexpr std::array<std::string_view, 17> kNames{
        "UNDEFINED", "FLOAT",   "UINT8",  "INT8",   "UINT16", "INT16",     "INT32",      "INT64",   "STRING",
        "BOOL",      "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16"};
    const auto* text = u.attributes().find("to");
    if (text == nullptr || !std::holds_alternative<std::string>(*text)) return;
    const auto* found = std::find(kNames.begin(), kNames.end(), std::get<std::string>(*text));
    require(found != kNames.end(), "casts to '{}', which is no element type", std::get<std::string>(*text));
    u.attributes().set("to", static_cast<int64_t>(found - kNames.begin()));
}

void upgrade_scatter(Upgrade& u) { u.graph().set_op(u.node(), "ScatterElements"); }

void upgrade_roi_align(Upgrade& u) {
    u.attributes().set("coordinate_transformation_mode", std::string("output_half_pixel"));
}

void upgrade_grid_sample(Upgrade& u) {
    const std::string mode = u.attributes().get_string("mode", "bilinear");
    if (mode == "bilinear") u.attributes().set("mode", std::string("linear"));
    if (mode == "bicubic") u.attributes().set("mode", std::string("cubic"));
}

void upgrade_concat(Upgrade& u) { u.attributes().set("axis", u.attributes().get_int("axis", 1)); }

void upgrade_recurrent(Upgrade& u) { u.attributes().erase("output_sequence"); }

void refuse_old_form(Upgrade&) {
    fail("this old form is not supported: export the model with a newer opset");
}

}  // namespace kilter
