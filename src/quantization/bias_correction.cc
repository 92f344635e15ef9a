#include "quantization/eligibility.h"
#include "quantization/recipes.h"

namespace kilter {
namespace {

// For every element of the weights: which output and which input channel it connects.
struct Channels {
    int64_t outputs = 0;

    Channels(const Node& node, const Tensor& weights) : weights_(weights) {
        const std::string_view type = public_type(node);
        groups_ = type == "MatMul" ? 1 : node.attributes.get_int("group", 1);
        for (int i = 2; i < weights.rank(); ++i) positions_ *= weights.dim(i);
        input_first_ =
            type == "ConvTranspose" || (type == "MatMul" && node.attributes.get_int("trans_b") == 0);
        outputs = input_first_ ? weights.dim(1) * groups_ : weights.dim(0);
        inputs_ = input_first_ ? weights.dim(0) : weights.dim(1) * groups_;
    }
    int64_t inputs() const { return inputs_; }
    std::pair<int64_t, int64_t> operator()(int64_t index) const {
        const int64_t row = index / positions_ / weights_.dim(1);
        const int64_t column = index / positions_ % weights_.dim(1);
        if (input_first_) return {row / (inputs_ / groups_) * weights_.dim(1) + column, row};
        return {row, row / (outputs / groups_) * weights_.dim(1) + column};
    }

  private:
    const Tensor& weights_;
    int64_t groups_ = 1, positions_ = 1, inputs_ = 0;
    bool input_first_ = false;
};

}  // namespace

// docs/arithmetic.md, "Bias correction"
Tensor bias_correction(const Node& node, const Tensor& weights, const Tensor& rounded, const ValueStats* x) {
    const bool matrix = public_type(node) == "MatMul";
    if (x == nullptr || x->channel_mean.empty() || (matrix && weights.rank() != 2)) return {};
    const int rank = node.input(0)->type.shape ? static_cast<int>(node.input(0)->type.shape->size()) : -1;
    if (x->channel_axis != (matrix ? rank - 1 : 1)) return {};
    if (matrix && node.attributes.get_int("trans_a") != 0) return {};
    const Channels channels(node, weights);
    if (static_cast<int64_t>(x->channel_mean.size()) != channels.inputs()) return {};
    const double alpha = matrix ? node.attributes.get_float("alpha", 1.0F) : 1.0;
    std::vector<double> shift(static_cast<size_t>(channels.outputs), 0.0);
    const std::span<const float> exact = weights.as<float>();
    const std::span<const float> stored = rounded.as<float>();
    for (int64_t i = 0; i < weights.size(); ++i) {
        const auto [output, input] = channels(i);
        const auto at = static_cast<size_t>(i);
        shift[static_cast<size_t>(output)] +=
            alpha * (static_cast<double>(exact[at]) - static_cast<double>(stored[at])) *
            x->channel_mean[static_cast<size_t>(input)];
    }
    return Tensor::of<double>({channels.outputs}, shift).converted(DType::f32);
}

}  // namespace kilter
