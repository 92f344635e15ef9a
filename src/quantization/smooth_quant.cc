#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "ops/post_ops.h"
#include "passes/rewrite.h"
#include "quantization/eligibility.h"
#include "quantization/recipes.h"

namespace kilter {
namespace {

// Factors outside these bounds say more about the calibration samples than about the model.
constexpr float kLargestFactor = 100.0F;
constexpr double kLowQuantile = 0.1;  // factors below that of this part of the channels are raised to it

bool is_smoothable(const Graph& graph, const Node& node) {
    if (!node.is_kilter("MatMul") || node.attributes.get_int("trans_a") != 0) return false;
    const Tensor* weights = graph.constant(node.input(1));
    return weights != nullptr && weights->rank() == 2 && weights->dtype() == DType::f32;
}

bool rows_are_inputs(const Node& node) { return node.attributes.get_int("trans_b") == 0; }

// Largest |w| of every input channel over all products that read the activation.
std::vector<float> weight_ranges(const Graph& graph, const std::vector<Node*>& products, size_t channels) {
    std::vector<float> largest(channels, 0.0F);
    for (const Node* node : products) {
        const Tensor& weights = *graph.constant(node->input(1));
        const auto columns = static_cast<size_t>(weights.dim(1));
        const std::span<const float> values = weights.as<float>();
        for (size_t i = 0; i < values.size(); ++i) {
            float& entry = largest[rows_are_inputs(*node) ? i / columns : i % columns];
            entry = std::max(entry, std::fabs(values[i]));
        }
    }
    return largest;
}

// docs/arithmetic.md, "SmoothQuant"
std::vector<float> factors(const ValueStats& x, const std::vector<float>& weights, double alpha) {
    std::vector<float> s(weights.size(), 1.0F);
    for (size_t i = 0; i < s.size(); ++i) {
        const double activation = std::max(std::fabs(x.channel_min[i]), std::fabs(x.channel_max[i]));
        if (activation <= 0 || weights[i] <= 0) continue;
        s[i] = static_cast<float>(std::pow(activation, alpha) /
                                  std::pow(static_cast<double>(weights[i]), 1 - alpha));
    }
    std::vector<float> sorted = s;
    std::ranges::sort(sorted);
    const float low = sorted[static_cast<size_t>(kLowQuantile * static_cast<double>(sorted.size()))];
    for (float& factor : s) factor = std::clamp(factor, std::min(low, kLargestFactor), kLargestFactor);
    return s;
}

Tensor divided(const Tensor& tensor, const std::vector<float>& s) {
    Tensor result = tensor.clone();
    const std::span<float> values = result.as_mutable<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] /= s[i % s.size()];
    return result;
}

// LayerNormalization whose scale and bias can take the factors: one number for every channel.
bool can_fold_into(const Graph& graph, const Node* node, size_t channels) {
    if (node == nullptr || !node->is("LayerNormalization")) return false;
    for (const size_t index : {size_t{1}, size_t{2}}) {
        if (node->input(index) == nullptr) continue;
        const Tensor* tensor = graph.constant(node->input(index));
        if (tensor == nullptr || tensor->dtype() != DType::f32 ||
            tensor->size() != static_cast<int64_t>(channels))
            return false;
    }
    return true;
}

// Makes the products read x/s, at the lowest price: in a LayerNormalization or a post-op when nobody else reads x.
void divide(Graph& graph, Value* x, const std::vector<Node*>& products, const std::vector<float>& s) {
    const bool exclusive = !graph.is_output(x) && x->users().size() == products.size();
    Node* producer = x->producer();
    if (exclusive && can_fold_into(graph, producer, s.size())) {
        for (const size_t index : {size_t{1}, size_t{2}})
            if (Value* value = producer->input(index))
                graph.set_input(
                    *producer, index,
                    graph.add_constant(divided(*graph.constant(value), s), graph.fresh_name(value->name())));
        return;
    }
    std::vector<float> inverse(s.size());
    std::ranges::transform(s, inverse.begin(), [](float factor) { return 1.0F / factor; });
    Value* constant = graph.add_constant(Tensor::of<float>({static_cast<int64_t>(s.size())}, inverse),
                                         graph.fresh_name(x->name() + "_smooth"));
    if (exclusive && producer != nullptr && producer->is_kilter("MatMul")) {
        append_post_op(graph, *producer, "mul", 0, 0, constant);
        return;
    }
    Value* smoothed = graph.add("Mul", {x, constant}, {}, x->name() + "/smooth");
    smoothed->type = x->type;
    for (Node* node : products) graph.set_input(*node, 0, smoothed);
}

void multiply(Graph& graph, Node& node, const std::vector<float>& s) {
    const Tensor& weights = *graph.constant(node.input(1));
    Tensor scaled = weights.clone();
    const auto columns = static_cast<size_t>(weights.dim(1));
    const std::span<float> values = scaled.as_mutable<float>();
    for (size_t i = 0; i < values.size(); ++i)
        values[i] *= s[rows_are_inputs(node) ? i / columns : i % columns];
    graph.set_input(node, 1, graph.add_constant(std::move(scaled), graph.fresh_name(node.input(1)->name())));
}

}  // namespace

int smooth_quant(Graph& graph, const Stats& stats, double alpha) {
    std::vector<Value*> activations;
    for (const auto& node : graph.nodes())
        if (is_smoothable(graph, *node) &&
            std::ranges::find(activations, node->input(0)) == activations.end())
            activations.push_back(node->input(0));
    int smoothed = 0;
    for (Value* x : activations) {
        std::vector<Node*> products;
        for (Node* user : x->users())
            if (is_smoothable(graph, *user) && user->input(0) == x &&
                std::ranges::find(products, user) == products.end())
                products.push_back(user);
        const ValueStats* seen = stats.find(x->name());
        const int rank = rank_of(x);
        if (seen == nullptr || seen->channel_min.empty() || seen->channel_axis != rank - 1) continue;
        const size_t channels = seen->channel_min.size();
        if (!x->type.shape || x->type.shape->back().value != static_cast<int64_t>(channels)) continue;
        const std::vector<float> s = factors(*seen, weight_ranges(graph, products, channels), alpha);
        divide(graph, x, products, s);
        for (Node* node : products) multiply(graph, *node, s);
        ++smoothed;
    }
    graph.remove_dead();
    graph.sort();
    infer_types(graph);
    return smoothed;
}

}  // namespace kilter
