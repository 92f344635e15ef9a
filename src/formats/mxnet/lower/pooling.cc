// Pools over windows, over the whole image, and to a given size.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "formats/mxnet/lower/lowering.h"

namespace kilter::mxnet {
namespace {

Value* global_pool(Lowering& l, Value* x, const std::string& type) {
    if (type == "max") return l.emit("GlobalMaxPool", {x});
    if (type == "avg") return l.emit("GlobalAveragePool", {x});
    if (type == "lp")
        return l.emit("GlobalLpPool", {x}, attributes_of({{"p", l.parameters().integer("p_value", 2)}}));
    if (type != "sum") not_lowered("pool_type {}", type);
    Ints axes(static_cast<size_t>(l.rank(x)) - 2);
    std::iota(axes.begin(), axes.end(), 2);
    return l.emit("ReduceSum", {x, l.add_ints(axes)});
}

Attributes pool_window(const Lowering& l, const Ints& kernel) {
    const Parameters parameters = l.parameters();
    const Ints pad = parameters.integers("pad", Ints(kernel.size(), 0));
    Ints pads = pad;
    pads.insert(pads.end(), pad.begin(), pad.end());
    Attributes attributes = attributes_of(
        {{"kernel_shape", kernel}, {"strides", parameters.integers("stride", Ints(kernel.size(), 1))}});
    // valid: windows that fit; full: as many as it takes to see everything; same: one for every stride.
    const std::string convention = parameters.text("pooling_convention", "valid");
    if (convention == "same") {
        attributes.set("auto_pad", std::string("SAME_UPPER"));
        return attributes;
    }
    if (convention != "valid" && convention != "full") not_lowered("pooling_convention {}", convention);
    attributes.set("pads", pads);
    if (convention == "full") attributes.set("ceil_mode", int64_t{1});
    return attributes;
}

// How many windows of the full convention begin behind the image along each axis. MXNet has them, ONNX leaves them out.
Ints windows_behind(const Lowering& l, const Value* x, const Ints& kernel) {
    const Parameters parameters = l.parameters();
    const Ints pad = parameters.integers("pad", Ints(kernel.size(), 0));
    const Ints stride = parameters.integers("stride", Ints(kernel.size(), 1));
    Ints behind(kernel.size(), 0);
    if (parameters.text("pooling_convention", "valid") != "full") return behind;
    if (pad.size() != kernel.size() || stride.size() != kernel.size())
        not_lowered("windows of several ranks");
    for (size_t i = 0; i < kernel.size(); ++i) {
        // The last one begins before the image's end plus pad + stride - kernel.
        if (stride[i] < 1 || pad[i] <= kernel[i] - stride[i]) continue;
        const Dims& dims = l.dims(x);
        if (dims.size() != kernel.size() + 2 || !dims[i + 2].known())
            not_lowered("the size of the image must be known for these windows");
        const int64_t size = dims[i + 2].value;
        const int64_t steps = (size + 2 * pad[i] - kernel[i] + stride[i] - 1) / stride[i];
        behind[i] = static_cast<int64_t>(steps * stride[i] >= size + pad[i]);
    }
    return behind;
}

Value* plain_window_pool(Lowering& l, Value* x, const std::string& type, const Ints& kernel) {
    Attributes attributes = pool_window(l, kernel);
    if (type == "max") return l.emit("MaxPool", {x}, std::move(attributes));
    if (type == "lp") {
        attributes.set("p", l.parameters().integer("p_value", 2));
        return l.emit("LpPool", {x}, std::move(attributes));
    }
    if (type != "avg" && type != "sum") not_lowered("pool_type {}", type);
    const bool include_pad = type == "sum" || l.parameters().flag("count_include_pad", true);
    attributes.set("count_include_pad", static_cast<int64_t>(include_pad));
    if (type == "avg") return l.emit("AveragePool", {x}, std::move(attributes));
    if (attributes.get_int("ceil_mode") != 0) not_lowered("sums of windows that reach over the border");
    Value* mean = l.emit("AveragePool", {x}, std::move(attributes));
    const int64_t size = std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>());
    return l.emit("Mul", {mean, l.scalar_like(static_cast<double>(size), x)});
}

Value* window_pool(Lowering& l, Value* x, const std::string& type) {
    const Ints kernel = l.parameters().integers("kernel");
    Value* y = plain_window_pool(l, x, type, kernel);
    const Ints behind = windows_behind(l, x, kernel);
    if (std::ranges::count(behind, 0) == std::ssize(behind)) return y;
    // They see nothing: the lowest number there is, or a sum of none.
    Ints pads(2 * behind.size() + 4, 0);
    std::ranges::copy(behind, pads.end() - std::ssize(behind));
    const double nothing = type == "max" ? std::numeric_limits<float>::lowest() : 0.0;
    return l.emit("Pad", {y, l.add_ints(pads), l.scalar_like(nothing, x)});
}

void lower_pooling(Lowering& l) {
    const Parameters parameters = l.parameters();
    const bool global = parameters.flag("global_pool", false);
    const int rank = global && l.input()->type.shape ? l.rank(l.input())
                     : global                        ? 4
                              : static_cast<int>(parameters.integers("kernel").size()) + 2;
    const bool last = is_channels_last(l);
    Value* x = last ? l.channels_first(l.input(), rank) : l.input();
    const std::string type = parameters.text("pool_type", "max");
    Value* y = global ? global_pool(l, x, type) : window_pool(l, x, type);
    l.name_main(y);
    l.result(last ? l.channels_last(y, rank) : y);
}

void lower_adaptive_average(Lowering& l) {
    const Ints size = l.parameters().integers("output_size", {1, 1});
    for (const int64_t side : size)
        if (side != 1) not_lowered("an output of {}", side);
    l.result(l.emit("GlobalAveragePool", {l.input()}));
}

constexpr std::array kPoolingRules{
    LowerRule{"Pooling", lower_pooling},
    LowerRule{"Pooling_v1", lower_pooling},
    LowerRule{"_contrib_AdaptiveAvgPooling2D", lower_adaptive_average},
};

}  // namespace

std::span<const LowerRule> pooling_rules() { return kPoolingRules; }

}  // namespace kilter::mxnet
