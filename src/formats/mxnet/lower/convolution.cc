// Convolutions and transposed convolutions.
#include <array>

#include "formats/mxnet/lower/lowering.h"

namespace kilter::mxnet {
namespace {

// Begins and ends of the paddings, as ONNX wants them; MXNet pads both sides alike.
Ints both_sides(const Ints& pad) {
    Ints pads = pad;
    pads.insert(pads.end(), pad.begin(), pad.end());
    return pads;
}

struct Window {
    int rank;
    bool last;
    Value* x;
    std::vector<Value*> inputs;
    Attributes attributes;
};

Window read_window(Lowering& l, const Ints& kernel) {
    const Parameters parameters = l.parameters();
    const Ints ones(kernel.size(), 1), zeros(kernel.size(), 0);
    const int rank = static_cast<int>(kernel.size()) + 2;
    const bool last = is_channels_last(l);
    Value* x = last ? l.channels_first(l.input(0), rank) : l.input(0);
    Value* weights = last ? l.channels_first(l.input(1), rank) : l.input(1);
    std::vector<Value*> inputs{x, weights};
    return {rank, last, x, inputs,
            attributes_of({{"kernel_shape", kernel},
                           {"strides", parameters.integers("stride", ones)},
                           {"dilations", parameters.integers("dilate", ones)},
                           {"pads", both_sides(parameters.integers("pad", zeros))},
                           {"group", parameters.integer("num_group", 1)}})};
}

void finish(Lowering& l, Window& window, std::string_view op, bool no_bias) {
    if (!no_bias) window.inputs.push_back(l.input(2));
    Value* y = l.emit(op, window.inputs, std::move(window.attributes));
    l.name_main(y);
    l.result(window.last ? l.channels_last(y, window.rank) : y);
}

void lower_convolution(Lowering& l) {
    Window window = read_window(l, l.parameters().integers("kernel"));
    finish(l, window, "Conv", l.parameters().flag("no_bias", false));
}

void lower_deconvolution(Lowering& l) {
    const Parameters parameters = l.parameters();
    if (parameters.has("target_shape")) not_lowered("target_shape");
    Window window = read_window(l, parameters.integers("kernel"));
    const Ints adjustment = parameters.integers("adj");
    if (!adjustment.empty()) window.attributes.set("output_padding", adjustment);
    finish(l, window, "ConvTranspose", parameters.flag("no_bias", true));
}

constexpr std::array kConvolutionRules{
    LowerRule{"Convolution", lower_convolution},
    LowerRule{"Convolution_v1", lower_convolution},
    LowerRule{"Deconvolution", lower_deconvolution},
};

}  // namespace

std::span<const LowerRule> convolution_rules() { return kConvolutionRules; }

}  // namespace kilter::mxnet
