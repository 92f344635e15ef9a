// Pools over windows.
#include <array>

#include "formats/tensorflow/lower/lowering.h"
#include "formats/tensorflow/lower/window.h"

namespace kilter::tensorflow {
namespace {

template <int kRank>
void lower_pool(Lowering& l, std::string_view op, const Ints& ksize) {
    const bool last = is_channels_last(l);
    Value* x = last ? l.channels_first(l.input(0), kRank) : l.input(0);
    const WindowAttributes window = read_window(l, spatial_entries(l, ksize, kRank - 2, "ksize"), x);
    Attributes attributes = window.to_onnx();
    attributes.set("kernel_shape", window.kernel);
    if (op == "AveragePool") attributes.erase("dilations");
    Value* y = l.emit(op, {x}, std::move(attributes));
    l.name_main(y);
    l.result(last ? l.channels_last(y, kRank) : y);
}

template <int kRank>
void lower_max(Lowering& l) {
    lower_pool<kRank>(l, "MaxPool", l.attributes().get_ints("ksize"));
}

template <int kRank>
void lower_average(Lowering& l) {
    lower_pool<kRank>(l, "AveragePool", l.attributes().get_ints("ksize"));
}

constexpr std::array kPoolingRules{
    LowerRule{"MaxPool", lower_max<4>},
    LowerRule{"MaxPool3D", lower_max<5>},
    LowerRule{"AvgPool", lower_average<4>},
    LowerRule{"AvgPool3D", lower_average<5>},
};

}  // namespace

std::span<const LowerRule> pooling_rules() { return kPoolingRules; }

}  // namespace kilter::tensorflow
