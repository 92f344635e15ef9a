// Normalizations and softmax.
#include <array>
#include <numeric>

#include "formats/mxnet/lower/lowering.h"

namespace kilter::mxnet {
namespace {

// Swaps an axis with the one where ONNX has the channel.
Ints to_channel(int rank, int64_t axis) {
    Ints perm(static_cast<size_t>(rank));
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[1], perm[static_cast<size_t>(axis)]);
    return perm;
}

int64_t length_of(const Lowering& l, const Value* vector) {
    const Dims& dims = l.dims(vector);
    if (dims.size() != 1 || !dims[0].known()) not_lowered("'{}' has no known length", vector->name());
    return dims[0].value;
}

void lower_batch_norm(Lowering& l) {
    const Parameters parameters = l.parameters();
    Value* x = l.input(0);
    const int64_t axis = l.axis(parameters.integer("axis", 1), x);
    // The scale that the file holds does not count while it is fixed.
    Value* gamma = parameters.flag("fix_gamma", true)
                       ? l.add_constant(Tensor::filled(DType::f32, {length_of(l, l.input(1))}, 1))
                       : l.input(1);
    if (axis != 1) x = l.transpose(x, to_channel(l.rank(x), axis));
    const auto epsilon = static_cast<float>(parameters.real("eps", 1e-3));
    Value* y = l.emit("BatchNormalization", {x, gamma, l.input(2), l.input(3), l.input(4)},
                      attributes_of({{"epsilon", epsilon}}));
    l.name_main(y);
    if (axis != 1) y = l.transpose(y, to_channel(l.rank(y), axis));
    l.result(y);
}

void lower_layer_norm(Lowering& l) {
    const int64_t axis = l.parameters().integer("axis", -1);
    Value* x = l.input(0);
    if (axis != -1 && l.axis(axis, x) != l.rank(x) - 1) not_lowered("axis {}", axis);
    l.result(l.emit("LayerNormalization", {x, l.input(1), l.input(2)},
                    attributes_of({{"axis", int64_t{-1}},
                                   {"epsilon", static_cast<float>(l.parameters().real("eps", 1e-5))}})));
}

void lower_instance_norm(Lowering& l) {
    l.result(l.emit("InstanceNormalization", {l.input(0), l.input(1), l.input(2)},
                    attributes_of({{"epsilon", static_cast<float>(l.parameters().real("eps", 1e-3))}})));
}

// Scale and shift count channels since MXNet 1.7.
void lower_group_norm(Lowering& l) {
    l.result(l.emit("GroupNormalization", {l.input(0), l.input(1), l.input(2)},
                    attributes_of({{"num_groups", l.parameters().integer("num_groups", 1)},
                                   {"epsilon", static_cast<float>(l.parameters().real("eps", 1e-5))}})));
}

void lower_l2(Lowering& l) {
    const Parameters parameters = l.parameters();
    Value* x = l.input();
    const std::string mode = parameters.text("mode", "instance");
    const int rank = l.rank(x);
    Ints axes;
    if (mode == "channel")
        axes = {1};
    else
        for (int axis = mode == "spatial" ? 2 : 1; axis < rank; ++axis) axes.push_back(axis);
    Value* sum = l.emit("ReduceSumSquare", {x, l.add_ints(axes)});
    sum = l.emit("Add", {sum, l.scalar_like(parameters.real("eps", 1e-10), x)});
    l.result(l.emit("Div", {x, l.emit("Sqrt", {sum})}));
}

// MXNet divides alpha by the number of channels as ONNX does.
void lower_lrn(Lowering& l) {
    const Parameters parameters = l.parameters();
    l.result(l.emit("LRN", {l.input()},
                    attributes_of({{"size", parameters.integer("nsize", 5)},
                                   {"alpha", static_cast<float>(parameters.real("alpha", 1e-4))},
                                   {"beta", static_cast<float>(parameters.real("beta", 0.75))},
                                   {"bias", static_cast<float>(parameters.real("knorm", 2))}})));
}

void softmax(Lowering& l, std::string_view op, int64_t axis) {
    Value* x = l.input();
    if (l.size() > 1) not_lowered("a softmax with lengths");
    const double temperature = l.parameters().real("temperature", 1);
    if (temperature != 1) x = l.emit("Div", {x, l.scalar_like(temperature, x)});
    l.result(l.emit(op, {x}, attributes_of({{"axis", axis}})));
}

// The label is for training.
void lower_softmax_output(Lowering& l) {
    const Parameters parameters = l.parameters();
    const bool channel = parameters.flag("multi_output", false);
    if (!channel && !parameters.flag("preserve_shape", false) && l.input()->type.shape &&
        l.rank(l.input()) != 2)
        not_lowered("a softmax over several axes");
    l.result(l.emit("Softmax", {l.input()}, attributes_of({{"axis", int64_t{channel ? 1 : -1}}})));
}

void lower_softmax_activation(Lowering& l) {
    const bool channel = l.parameters().text("mode", "instance") == "channel";
    l.result(l.emit("Softmax", {l.input()}, attributes_of({{"axis", int64_t{channel ? 1 : -1}}})));
}

constexpr std::array kNormalizationRules{
    LowerRule{"BatchNorm", lower_batch_norm},
    LowerRule{"BatchNorm_v1", lower_batch_norm},
    LowerRule{"_contrib_SyncBatchNorm", lower_batch_norm},
    LowerRule{"LayerNorm", lower_layer_norm},
    LowerRule{"InstanceNorm", lower_instance_norm},
    LowerRule{"GroupNorm", lower_group_norm},
    LowerRule{"L2Normalization", lower_l2},
    LowerRule{"LRN", lower_lrn},
    LowerRule{"softmax", [](Lowering& l) { softmax(l, "Softmax", l.parameters().integer("axis", -1)); }},
    LowerRule{"log_softmax",
              [](Lowering& l) { softmax(l, "LogSoftmax", l.parameters().integer("axis", -1)); }},
    LowerRule{"SoftmaxOutput", lower_softmax_output},
    LowerRule{"Softmax", lower_softmax_output},
    LowerRule{"SoftmaxActivation", lower_softmax_activation},
};

}  // namespace

std::span<const LowerRule> normalization_rules() { return kNormalizationRules; }

}  // namespace kilter::mxnet
