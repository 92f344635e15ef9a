#include "quantization/tables.h"

#include <fmt/format.h>

namespace kilter {

const TableQuantizer::Made& TableQuantizer::make(Value* table, const WeightChoice& choice) {
    const std::string key =
        fmt::format("table|{}|{}|{}", table->name(), name(choice.granularity), choice.bits);
    if (const auto found = made_.find(key); found != made_.end()) return found->second;
    const bool per_column = choice.granularity == Granularity::per_channel;
    const auto make_now = [&] {
        const Tensor& reals = *graph_.constant(table);
        QuantizedWeights weights;
        weights.params = weight_params(reals, per_column ? 1 : -1, choice.bits);
        weights.integers = quantize_tensor(reals, weights.params, choice.bits);
        return weights;
    };
    const QuantizedWeights weights = cache_ == nullptr ? make_now() : cache_->weights(key, make_now);
    Shape shape;
    if (per_column) shape.push_back(static_cast<int64_t>(weights.params.scales.size()));
    const auto add = [&](Tensor tensor, std::string_view ending) {
        return graph_.add_constant(std::move(tensor), graph_.fresh_name(table->name() + std::string(ending)));
    };
    Made made{add(weights.integers, "_quantized"),
              add(Tensor::of<float>(shape, weights.params.scales), "_scale"),
              add(Tensor::filled(DType::i8, shape, 0.0), "_zero_point"), per_column};
    return made_.emplace(key, made).first->second;
}

void TableQuantizer::quantize(Node& gather, const WeightChoice& choice) {
    const Made& made = make(gather.input(0), choice);
    Value* reals = gather.output();
    Value* integers = graph_.add_value(graph_.fresh_name(reals->name() + "_quantized"), reals->type);
    integers->type.dtype = DType::i8;
    graph_.set_input(gather, 0, made.integers);
    graph_.set_output(gather, 0, integers);
    Attributes attributes;
    if (made.per_column) attributes.set("axis", int64_t{-1});
    graph_.add_node("DequantizeLinear", {integers, made.scales, made.zero_points}, {reals}, attributes,
                    reals->name() + "_DequantizeLinear");
}

}  // namespace kilter
