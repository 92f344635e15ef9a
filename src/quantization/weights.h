// Weights and bias of one operator as integers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quantization/cache.h"

namespace kilter {

//! Replaces the constant weights and bias of a convolution or product by DequantizeLinear of integers. Remembers what it made,
//! so that operators that share weights share the integers as well.
class WeightQuantizer {
  public:
    //! `cache` may be null.
    WeightQuantizer(Graph& graph, const Stats& stats, const Recipes& recipes, QuantizationCache* cache)
        : graph_(graph), stats_(stats), recipes_(recipes), cache_(cache) {}

    //! `x_scale` is the scale of the activations. Returns a remark for the report; empty when there is nothing to say.
    std::string quantize(Node& node, const WeightChoice& choice, float x_scale);
    //! Output channels whose weights were shrunk by the recipe `overflow_safe`.
    int64_t shrunk_channels() const { return shrunk_; }
    //! Operators whose bias the recipe `bias_correction` changed.
    int corrected_operators() const { return corrected_; }

  private:
    QuantizedWeights make(const Node& node, const WeightChoice& choice, float x_scale) const;
    void shift_bias(Node& node, const Tensor& shift);

    Graph& graph_;
    const Stats& stats_;
    const Recipes& recipes_;
    QuantizationCache* cache_;
    int64_t shrunk_ = 0;
    int corrected_ = 0;
    struct Made {
        const Value* weights;
        QuantParams params;
        int bits;
        Value* dequantized;
    };
    std::vector<Made> made_;
};

}  // namespace kilter
