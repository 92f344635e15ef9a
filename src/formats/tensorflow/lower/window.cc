#include "formats/tensorflow/lower/window.h"

namespace kilter::tensorflow {

Ints spatial_entries(const Lowering& l, const Ints& list, size_t spatial, std::string_view name) {
    if (list.empty()) return Ints(spatial, 1);
    if (list.size() == 1) return Ints(spatial, list[0]);
    require(list.size() == spatial + 2, "attribute '{}' has {} entries for {} axes", name, list.size(),
            spatial + 2);
    const bool last = is_channels_last(l);
    const size_t channel = last ? spatial + 1 : 1;
    if (list[0] != 1 || list[channel] != 1) not_lowered("attribute '{}' covers batch or channels", name);
    const auto begin = list.begin() + (last ? 1 : 2);
    return {begin, begin + static_cast<std::ptrdiff_t>(spatial)};
}

WindowSpec read_window_spec(const Lowering& l, const Ints& kernel) {
    const size_t spatial = kernel.size();
    const TfAttributes& attributes = l.attributes();
    WindowSpec window;
    window.padding = attributes.get_string("padding", "VALID");
    window.strides = spatial_entries(l, attributes.get_ints("strides"), spatial, "strides");
    window.dilations = spatial_entries(l, attributes.get_ints("dilations"), spatial, "dilations");
    for (size_t axis = 0; axis < spatial; ++axis)
        require(window.strides[axis] > 0 && window.dilations[axis] > 0,
                "strides and dilations must be positive");
    if (window.padding == "EXPLICIT") {
        const Ints given = attributes.get_ints("explicit_paddings");
        require(given.size() == 2 * (spatial + 2), "attribute 'explicit_paddings' has {} entries",
                given.size());
        const size_t first = is_channels_last(l) ? 1 : 2;
        const size_t channel = is_channels_last(l) ? spatial + 1 : 1;
        if (given[0] != 0 || given[1] != 0 || given[2 * channel] != 0 || given[2 * channel + 1] != 0)
            not_lowered("batch or channels are padded");
        for (const size_t side : {0, 1})
            for (size_t axis = 0; axis < spatial; ++axis)
                window.explicit_pads.push_back(given[2 * (first + axis) + side]);
    } else if (window.padding != "SAME" && window.padding != "VALID") {
        not_lowered("padding {}", window.padding);
    }
    return window;
}

WindowAttributes read_window(const Lowering& l, const Ints& kernel, const Value* x) {
    const WindowSpec spec = read_window_spec(l, kernel);
    WindowAttributes window{kernel, spec.strides, spec.dilations, {}, {}};
    const size_t spatial = kernel.size();
    if (spec.padding != "SAME") {
        window.pads = spec.padding == "VALID" ? Ints(2 * spatial, 0) : spec.explicit_pads;
        return window;
    }
    window.pads.assign(2 * spatial, 0);
    for (size_t axis = 0; axis < spatial; ++axis) {
        const Dim size =
            x->type.shape && x->type.shape->size() == spatial + 2 ? (*x->type.shape)[axis + 2] : Dim();
        const int64_t stride = spec.strides[axis];
        const int64_t reach = (kernel[axis] - 1) * spec.dilations[axis] + 1;
        if (!size.known() && stride != 1 && reach > 1) {
            window.pads.clear();
            window.auto_pad = "SAME_UPPER";
            return window;
        }
        // With a stride of one the padding does not depend on the size.
        const int64_t steps = size.known() ? (size.value + stride - 1) / stride : 1;
        const int64_t needed = size.known() ? (steps - 1) * stride + reach - size.value : reach - 1;
        const int64_t total = std::max<int64_t>(needed, 0);
        window.pads[axis] = total / 2;
        window.pads[axis + spatial] = total - total / 2;
    }
    return window;
}

Attributes WindowAttributes::to_onnx() const {
    Attributes attributes = attributes_of({{"strides", strides}, {"dilations", dilations}});
    if (auto_pad.empty())
        attributes.set("pads", pads);
    else
        attributes.set("auto_pad", auto_pad);
    return attributes;
}

}  // namespace kilter::tensorflow
