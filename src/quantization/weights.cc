#include "quantization/weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "quantization/eligibility.h"
#include "quantization/insert.h"
#include "quantization/overflow_safe.h"
#include "quantization/recipes.h"

namespace kilter {

void WeightQuantizer::correct_bias(Node& node, const Tensor& weights, const Tensor& integers,
                                   const QuantParams& params) {
    const Tensor shift = bias_correction(node, weights, dequantize_tensor(integers, params),
                                         stats_.find(node.input(0)->name()));
    if (shift.empty()) return;
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

std::string WeightQuantizer::quantize(Node& node, const WeightChoice& choice, float x_scale) {
    if (weights_index(graph_, node) < 0) return {};
    Value* weights = node.input(1);
    const Tensor tensor = *graph_.constant(weights);
    const int axis = weights_axis(graph_, node);
    const bool per_channel = choice.granularity == Granularity::per_channel && axis >= 0;
    QuantParams params = weight_params(tensor, per_channel ? axis : -1, choice.bits);
    std::string remark;
    if (choice.granularity == Granularity::per_channel && !per_channel)
        remark = "weights per tensor: no axis holds its channels";

    const Tensor* bias = graph_.constant(node.input(2));
    if (bias != nullptr && fit_bias(params, *bias, x_scale))
        remark = "scales raised: its bias would not fit into int32";
    if (recipes_.overflow_safe) shrunk_ += make_overflow_safe(params, tensor, node, choice.bits);

    const auto found = std::ranges::find_if(made_, [&](const Made& made) {
        return made.weights == weights && made.params == params && made.bits == choice.bits;
    });
    const Tensor integers = quantize_tensor(tensor, params, choice.bits);
    if (recipes_.bias_correction) correct_bias(node, tensor, integers, params);
    Value* dequantized = nullptr;
    if (found != made_.end()) {
        dequantized = found->dequantized;
    } else {
        dequantized = add_dequantized(graph_, integers, params, weights->name());
        made_.push_back({weights, params, choice.bits, dequantized});
    }
    if (const Tensor* last = graph_.constant(node.input(2))) {
        QuantParams bias_params;
        const Tensor stored = quantize_bias(*last, params, x_scale, bias_params);
        graph_.set_input(node, 2, add_dequantized(graph_, stored, bias_params, node.input(2)->name()));
    }
    graph_.set_input(node, 1, dequantized);
    return remark;
}

}  // namespace kilter
