#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "ops/post_ops.h"
#include "passes/rewrite.h"
#include "quantization/eligibility.h"
#include "quantization/recipes.h"

namespace kilter {
namespace {

// Pairs see each other's changes through the convolution they share; a few rounds settle whole chains, depthwise ones
// in the middle included.
constexpr int kRounds = 40;
constexpr double kSettled = 1e-3;  // no factor further from one than this

bool is_conv(const Node& node) { return node.is("Conv") || node.is_kilter("Conv"); }

bool is_depthwise(const Graph& graph, const Node& node) {
    const Tensor* weights = graph.constant(node.input(1));
    return weights->dim(1) == 1 && node.attributes.get_int("group", 1) == weights->dim(0);
}

// f(s·x) = s·f(x) for s > 0, or a single Clip from zero, which is so once its limit is scaled as well.
bool scales_through(const Node& node, float& limit) {
    const std::vector<PostOp> ops = post_ops(node);
    if (ops.size() == 1 && ops[0].name == "clip" && ops[0].alpha == 0.0F) {
        limit = ops[0].beta;
        return true;
    }
    return std::ranges::all_of(ops,
                               [](const PostOp& op) { return op.name == "relu" || op.name == "leaky_relu"; });
}

bool has_own_weights(const Graph& graph, const Node& node) {
    const Tensor* weights = graph.constant(node.input(1));
    if (weights == nullptr || weights->dtype() != DType::f32 || node.input(1)->users().size() != 1)
        return false;
    const Value* bias = node.input(2);
    return bias == nullptr || (graph.constant(bias) != nullptr && bias->users().size() == 1);
}

struct Pair {
    Node* first;
    Node* second;
    float limit = std::numeric_limits<float>::infinity();  // of a Clip in between
    bool scaled = false;
    std::vector<float> factors = {};  // by which each channel was divided, in all
};

// Channel i of the weights: an output channel of the first operator, an input channel of the second.
template <class Function>
void for_channel(Tensor& weights, bool as_output, const Function& function) {
    const int64_t inner = weights.size() / (weights.dim(0) * weights.dim(1));
    const int64_t columns = weights.dim(1);
    const std::span<float> values = weights.as_mutable<float>();
    for (int64_t i = 0; i < weights.size(); ++i)
        function(static_cast<size_t>(as_output ? i / (inner * columns) : i / inner % columns),
                 values[static_cast<size_t>(i)]);
}

class Equalizer {
  public:
    explicit Equalizer(Graph& graph) : graph_(graph) { find_pairs(); }

    Equalized run() {
        for (int round = 0; round < kRounds; ++round) {
            double furthest = 0;
            for (Pair& pair : pairs_) furthest = std::max(furthest, balance(pair));
            if (furthest < kSettled) break;
        }
        for (auto& [value, tensor] : tensors_) graph_.replace_constant(value, tensor);
        Equalized result;
        for (Pair& pair : pairs_) {
            if (!pair.scaled) continue;
            ++result.pairs;
            if (std::isinf(pair.limit)) continue;
            limit_channels(pair);
            ++result.clips_split;
        }
        return result;
    }

  private:
    void find_pairs() {
        for (const auto& node : graph_.nodes()) {
            if (!is_conv(*node) || !has_own_weights(graph_, *node)) continue;
            Node* next = only_user(graph_, node->output());
            if (next == nullptr || !is_conv(*next) || next->input(0) != node->output()) continue;
            if (!has_own_weights(graph_, *next)) continue;
            const bool through = node->attributes.get_int("group", 1) == 1 || is_depthwise(graph_, *node);
            const bool into = next->attributes.get_int("group", 1) == 1 || is_depthwise(graph_, *next);
            Pair pair{node.get(), next};
            if (through && into && scales_through(*node, pair.limit)) pairs_.push_back(pair);
        }
        for (const Pair& pair : pairs_)
            for (Node* node : {pair.first, pair.second})
                for (const size_t index : {size_t{1}, size_t{2}})
                    if (Value* value = node->input(index); value != nullptr && !tensors_.contains(value))
                        tensors_.emplace(value, graph_.constant(value)->clone());
    }

    Tensor& weights(const Node& node, size_t index) { return tensors_.at(node.input(index)); }

    // docs/arithmetic.md, "Equalization". Returns how far the factors were from one.
    double balance(Pair& pair) {
        Tensor& first = weights(*pair.first, 1);
        Tensor& second = weights(*pair.second, 1);
        const bool depthwise = is_depthwise(graph_, *pair.second);
        const auto count = static_cast<size_t>(first.dim(0));
        std::vector<float> r1(count, 0.0F), r2(count, 0.0F), s(count, 1.0F);
        for_channel(first, true, [&](size_t i, float w) { r1[i] = std::max(r1[i], std::fabs(w)); });
        for_channel(second, depthwise, [&](size_t i, float w) { r2[i] = std::max(r2[i], std::fabs(w)); });
        double furthest = 0;
        for (size_t i = 0; i < count; ++i) {
            if (r1[i] <= 0 || r2[i] <= 0) continue;  // a dead channel
            s[i] = std::sqrt(r1[i] / r2[i]);
            furthest = std::max(furthest, std::fabs(std::log(static_cast<double>(s[i]))));
        }
        for_channel(first, true, [&](size_t i, float& w) { w /= s[i]; });
        for_channel(second, depthwise, [&](size_t i, float& w) { w *= s[i]; });
        if (pair.first->input(2) != nullptr) {
            const std::span<float> bias = weights(*pair.first, 2).as_mutable<float>();
            for (size_t i = 0; i < bias.size(); ++i) bias[i] /= s[i];
        }
        pair.factors.resize(count, 1.0F);
        for (size_t i = 0; i < count; ++i) pair.factors[i] *= s[i];
        pair.scaled = pair.scaled || furthest >= kSettled;
        return furthest;
    }

    // Clip(0, limit) becomes Relu and the minimum with limit/s, one for each channel.
    void limit_channels(const Pair& pair) {
        Node& node = *pair.first;
        Shape shape(static_cast<size_t>(graph_.constant(node.input(1))->rank()), 1);
        shape[1] = static_cast<int64_t>(pair.factors.size());
        std::vector<float> limits(pair.factors.size());
        for (size_t i = 0; i < limits.size(); ++i) limits[i] = pair.limit / pair.factors[i];
        Value* constant = graph_.add_constant(Tensor::of<float>(shape, limits),
                                              graph_.fresh_name(node.output()->name() + "_limit"));
        for (const std::string_view attribute : {"post_ops", "post_alphas", "post_betas"})
            node.attributes.erase(attribute);
        append_post_op(graph_, node, "relu");
        append_post_op(graph_, node, "min", 0, 0, constant);
    }

    Graph& graph_;
    std::vector<Pair> pairs_;
    std::unordered_map<Value*, Tensor> tensors_;  // weights and biases while they change
};

}  // namespace

Equalized equalize(Graph& graph) { return Equalizer(graph).run(); }

}  // namespace kilter
