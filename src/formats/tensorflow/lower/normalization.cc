// Batch normalization in all its spellings, local response normalization, softmax.
#include <array>

#include "formats/tensorflow/lower/lowering.h"

namespace kilter::tensorflow {
namespace {

void normalize(Lowering& l, const std::vector<Value*>& parameters, float epsilon) {
    const bool last = is_channels_last(l);
    const int rank = l.input(0)->type.shape ? l.rank(l.input(0)) : 4;
    Value* x = last ? l.channels_first(l.input(0), rank) : l.input(0);
    std::vector<Value*> inputs{x};
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    Value* y = l.emit("BatchNormalization", inputs, attributes_of({{"epsilon", epsilon}}));
    l.name_main(y);
    l.result(last ? l.channels_last(y, rank) : y);
}

void lower_fused(Lowering& l) {
    if (l.attributes().get_bool("is_training", true)) not_lowered("statistics of the batch (is_training)");
    normalize(l, {l.input(1), l.input(2), l.input(3), l.input(4)},
              l.attributes().get_float("epsilon", 1e-4F));
    // Outside of training the statistics are passed through; the rest exists for gradients only.
    if (l.is_read(1)) l.result(l.input(3), 1);
    if (l.is_read(2)) l.result(l.input(4), 2);
}

// Inputs: x, mean, variance, beta, gamma.
void lower_global(Lowering& l) {
    Value* gamma = l.input(4);
    if (!l.attributes().get_bool("scale_after_normalization", true)) {
        const Dims& dims = l.dims(gamma);
        if (dims.size() != 1 || !dims[0].known()) not_lowered("the number of channels is not known");
        gamma = l.add_constant(Tensor::filled(DType::f32, {dims[0].value}, 1));
    }
    normalize(l, {gamma, l.input(3), l.input(1), l.input(2)},
              l.attributes().get_float("variance_epsilon", 1e-3F));
}

// TensorFlow: x / (bias + alpha · Σ x²)^beta over 2·radius + 1 channels; ONNX divides alpha by that number.
void lower_lrn(Lowering& l) {
    const int64_t size = 2 * l.attributes().get_int("depth_radius", 5) + 1;
    const float alpha = l.attributes().get_float("alpha", 1) * static_cast<float>(size);
    Value* y = l.emit("LRN", {l.channels_first(l.input(0))},
                      attributes_of({{"size", size},
                                     {"alpha", alpha},
                                     {"beta", l.attributes().get_float("beta", 0.5F)},
                                     {"bias", l.attributes().get_float("bias", 1)}}));
    l.name_main(y);
    l.result(l.channels_last(y));
}

void lower_softmax(Lowering& l, std::string_view op) {
    l.result(l.emit(op, {l.input(0)}, attributes_of({{"axis", int64_t{-1}}})));
}

constexpr std::array kNormalizationRules{
    LowerRule{"FusedBatchNorm", lower_fused},
    LowerRule{"FusedBatchNormV2", lower_fused},
    LowerRule{"FusedBatchNormV3", lower_fused},
    LowerRule{"BatchNormWithGlobalNormalization", lower_global},
    LowerRule{"LRN", lower_lrn},
    LowerRule{"Softmax", [](Lowering& l) { lower_softmax(l, "Softmax"); }},
    LowerRule{"LogSoftmax", [](Lowering& l) { lower_softmax(l, "LogSoftmax"); }},
};

}  // namespace

std::span<const LowerRule> normalization_rules() { return kNormalizationRules; }

}  // namespace kilter::tensorflow
