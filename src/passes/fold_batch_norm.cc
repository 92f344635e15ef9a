// Batch normalization behind a convolution, transposed convolution or matrix product moves into its weights
// and bias.
#include <cmath>

#include "passes/channel_affine.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

bool is_inference(const Graph& graph, const Node& bn) {
    if (bn.attributes.get_int("training_mode") != 0) return false;
    for (const Value* extra : bn.outputs().subspan(1))
        if (extra != nullptr && (!extra->users().empty() || graph.is_output(extra))) return false;
    return true;
}

// bn(y) = (y − mean)/√(var + ε)·γ + β, as y·scale + shift
std::optional<ChannelAffine> batch_norm_affine(const Graph& graph, const Node& bn) {
    std::vector<double> parameters[4];  // gamma, beta, mean, variance
    for (size_t i = 0; i < 4; ++i) {
        const Tensor* tensor = constant_of(graph, bn.input(i + 1));
        if (tensor == nullptr) return std::nullopt;
        parameters[i] = tensor->to_doubles();
        if (parameters[i].size() != parameters[0].size()) return std::nullopt;
    }
    const auto& [gamma, beta, mean, variance] = parameters;
    const double epsilon = bn.attributes.get_float("epsilon", 1e-5F);
    ChannelAffine affine;
    for (size_t c = 0; c < gamma.size(); ++c) {
        const double scale = gamma[c] / std::sqrt(variance[c] + epsilon);
        affine.scale.push_back(scale);
        affine.shift.push_back(beta[c] - mean[c] * scale);
    }
    return affine;
}

}  // namespace

//! Exact up to rounding; needs constant weights and statistics, and no other reader of what is normalized.
bool fold_batch_norm(Graph& graph) {
    return rewrite(graph, "BatchNormalization", [](Graph& g, Node& bn) {
        Node* before = bn.input(0)->producer();
        if (before == nullptr || !has_channels(*before) || only_user(g, bn.input(0)) != &bn) return false;
        if (channel_axis(*before) != 1 || !is_inference(g, bn)) return false;
        const auto affine = batch_norm_affine(g, bn);
        if (!affine || static_cast<int64_t>(affine->scale.size()) != channel_count(g, *before)) return false;
        if (!absorb_affine(g, *before, *affine)) return false;
        take_over(g, *before, bn);
        return true;
    });
}

}  // namespace kilter
