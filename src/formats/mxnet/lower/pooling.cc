// Pools over windows, over the whole image, and to a given size.
#include <array>
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

Value* window_pool(Lowering& l, Value* x, const std::string& type) {
    const Ints kernel = l.parameters().integers("kernel");
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
