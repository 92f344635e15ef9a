#include "engine/geometry.h"

#include <algorithm>

namespace kilter::engine {
namespace {

// oneDNN checks that size, kernel, stride and both paddings give the result's size, so the end padding is derived.
std::optional<ConvGeometry> geometry(const Attributes& attributes, const Shape& x, Shape kernel,
                                     const Shape& y, bool transposed) {
    const size_t spatial = x.size() - 2;
    if (x.size() < 3 || kernel.size() != spatial || y.size() != x.size()) return std::nullopt;
    ConvGeometry found;
    found.strides = attributes.get_ints("strides", Shape(spatial, 1));
    found.dilations = attributes.get_ints("dilations", Shape(spatial, 1));
    Shape pads = attributes.get_ints("pads", Shape(2 * spatial, 0));
    const std::string automatic = attributes.get_string("auto_pad", "NOTSET");
    if (found.strides.size() != spatial || found.dilations.size() != spatial || pads.size() != 2 * spatial)
        return std::nullopt;
    found.kernel = kernel;
    const bool explicit_shape = transposed && attributes.has("output_shape");
    for (size_t i = 0; i < spatial; ++i) {
        const int64_t extent = (kernel[i] - 1) * found.dilations[i] + 1;
        const int64_t in = x[i + 2];
        const int64_t out = y[i + 2];
        const int64_t total = transposed ? (in - 1) * found.strides[i] + extent - out
                                         : (out - 1) * found.strides[i] + extent - in;
        int64_t begin = pads[i];
        if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER" || explicit_shape) {
            int64_t whole = std::max<int64_t>(total, 0);
            if (transposed && attributes.has("output_padding"))
                whole += attributes.get_ints("output_padding").at(i);
            begin = automatic == "SAME_LOWER" ? whole - whole / 2 : whole / 2;
            if (transposed && automatic != "SAME_UPPER") begin = whole - whole / 2;
            if (transposed && automatic == "SAME_UPPER") begin = whole / 2;
        } else if (automatic == "VALID") {
            begin = 0;
        }
        const int64_t end = total - begin;
        if (begin < 0 || kernel[i] < 1 || found.strides[i] < 1 || found.dilations[i] < 1) return std::nullopt;
        found.pads_begin.push_back(begin);
        found.pads_end.push_back(end);
        found.dilations[i] -= 1;
    }
    return found;
}

}  // namespace

std::optional<ConvGeometry> conv_geometry(const Node& node, const Shape& x, const Shape& weights,
                                          const Shape& y, bool transposed) {
    if (x.size() < 3 || weights.size() != x.size()) return std::nullopt;
    auto found = geometry(node.attributes, x, Shape(weights.begin() + 2, weights.end()), y, transposed);
    if (found) found->groups = node.attributes.get_int("group", 1);
    return found;
}

std::optional<ConvGeometry> pool_geometry(const Node& node, const Shape& x, const Shape& y) {
    if (x.size() < 3) return std::nullopt;
    return geometry(node.attributes, x, node.attributes.get_ints("kernel_shape"), y, false);
}

}  // namespace kilter::engine
