#include "quantization/weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "quantization/eligibility.h"
#include "quantization/insert.h"
#include "quantization/overflow_safe.h"
#include "quantization/recipes.h"

namespace kilter {

void WeightQuantizer::shift_bias(Node& node, const Tensor& shift) {
    const Tensor* bias = graph_.constant(node.input(2));
    if (node.input(2) != nullptr && bias == nullptr) return;
    Tensor corrected = shift.clone();
    const std::span<float> values = corrected.as_mutable<float>();
    if (bias != nullptr) {
        const std::span<const float> old = bias->as<float>();
        for (size_t i = 0; i < values.size(); ++i) values[i] += old[old.size() == 1 ? 0 : i];
    }
    const std::string stem = node.input(2) != nullptr ? node.input(2)->name() : plan_name(node) + "_bias";
    graph_.set_input(node, 2, graph_.add_constant(std::move(corrected), graph_.fresh_name(stem)));
    ++corrected_;
}

QuantizedWeights WeightQuantizer::make(const Node& node, const WeightChoice& choice, float x_scale) const {
    const Tensor tensor = *graph_.constant(node.input(1));
    const int axis = weights_axis(graph_, node);
    const bool per_channel = choice.granularity == Granularity::per_channel && axis >= 0;
    QuantizedWeights made;
    made.params = weight_params(tensor, per_channel ? axis : -1, choice.bits);
    if (choice.granularity == Granularity::per_channel && !per_channel)
        made.remark = "weights per tensor: no axis holds its channels";
    const Tensor* bias = graph_.constant(node.input(2));
    if (bias != nullptr && fit_bias(made.params, *bias, x_scale))
        made.remark = "scales raised: its bias would not fit into int32";
    if (recipes_.overflow_safe)
        made.shrunk_channels = make_overflow_safe(made.params, tensor, node, choice.bits);
    made.integers = quantize_tensor(tensor, made.params, choice.bits);
    if (recipes_.bias_correction)
        made.bias_shift = bias_correction(node, tensor, dequantize_tensor(made.integers, made.params),
                                          stats_.find(node.input(0)->name()));
    return made;
}

std::string WeightQuantizer::quantize(Node& node, const WeightChoice& choice, float x_scale) {
    if (weights_index(graph_, node) < 0) return {};
    const auto make_now = [&] { return make(node, choice, x_scale); };
    const QuantizedWeights made =
        cache_ == nullptr ? make_now()
                          : cache_->weights(fmt::format("{}|{}|{}|{}|{}{}", plan_name(node),
                                                        name(choice.granularity), choice.bits, x_scale,
                                                        recipes_.overflow_safe, recipes_.bias_correction),
                                            make_now);
    shrunk_ += made.shrunk_channels;
    if (!made.bias_shift.empty()) shift_bias(node, made.bias_shift);

    Value* weights = node.input(1);
    const auto found = std::ranges::find_if(made_, [&](const Made& other) {
        return other.weights == weights && other.params == made.params && other.bits == choice.bits;
    });
    Value* dequantized = nullptr;
    if (found != made_.end()) {
        dequantized = found->dequantized;
    } else {
        dequantized = add_dequantized(graph_, made.integers, made.params, weights->name());
        made_.push_back({weights, made.params, choice.bits, dequantized});
    }
    if (const Tensor* last = graph_.constant(node.input(2))) {
        QuantParams bias_params;
        const Tensor stored = quantize_bias(*last, made.params, x_scale, bias_params);
        graph_.set_input(node, 2, add_dequantized(graph_, stored, bias_params, node.input(2)->name()));
    }
    graph_.set_input(node, 1, dequantized);
    return made.remark;
}

}  // namespace kilter
