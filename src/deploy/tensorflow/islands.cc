#include "deploy/tensorflow/islands.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "deploy/tensorflow/symbolic_shapes.h"
#include "formats/tensorflow/rewrites/gelu.h"

namespace kilter::tensorflow {
namespace {

constexpr std::array<std::string_view, 6> kPassive{"MaxPool", "AvgPool", "ConcatV2",
                                                   "Reshape", "Squeeze", "Pad"};

class Search {
  public:
    Search(TfGraph& graph, const IslandOptions& options)
        : graph_(graph),
          options_(options),
          wanted_(wanted(options)),
          readers_(graph, wanted_),
          shapes_(symbolic_shapes(graph)) {}

    Islands run() {
        const std::vector<TfNode*> order = graph_.sorted();
        for (TfNode* node : order) {
            if (!is_product(*node) && node->op != "BatchMatMulV2") continue;
            const std::string problem = obstacle(*node);
            if (problem.empty())
                islands_.fused.push_back(fuse(*node));
            else
                islands_.left_out.emplace_back(node->name, problem);
        }
        for (TfNode* node : order)
            if (is_passive(*node) && can_pass(*node)) islands_.passive.insert(node);
        prune_passive(graph_, islands_);
        return std::move(islands_);
    }

  private:
    static Wanted wanted(const IslandOptions& options) {
        Wanted names;
        for (const std::string& output : options.outputs) names.insert(TfInput(output).node);
        return names;
    }

    bool excluded(const TfNode& node) const {
        return std::ranges::find(options_.excluded_nodes, node.name) != options_.excluded_nodes.end() ||
               std::ranges::find(options_.excluded_ops, node.op) != options_.excluded_ops.end();
    }

    bool chosen_float(const TfNode& node) const {
        const auto found = options_.choices.find(node.name);
        return found != options_.choices.end() && found->second.precision != Precision::int8;
    }

    // Why a product stays as it is; empty when it does not.
    std::string obstacle(const TfNode& node) const {
        if (excluded(node)) return "excluded";
        if (chosen_float(node)) return "it was chosen to stay";
        if (node.op == "BatchMatMulV2") return "TensorFlow has no integer kernel for products of batches";
        if (node.attributes.get_type("T", kFloat) != kFloat) return "it does not compute with floats";
        if (is_convolution(node) && node.attributes.get_string("data_format", "NHWC") != "NHWC")
            return "TensorFlow's integer kernels take NHWC only";
        if (!output_channels(graph_, node)) return "its weights are not constant";
        const Tensor weights = *constant_of(graph_, node.inputs[1]);
        if (weights.size() == 0) return "its weights are empty";
        if (!std::ranges::all_of(weights.as<float>(), [](float value) { return std::isfinite(value); }))
            return "its weights are not all finite numbers";
        const auto input = shapes_.find(node.inputs[0].node);
        if (node.op == "Conv2D" && node.inputs[0].port == 0 && input != shapes_.end() &&
            input->second.size() == 4 && input->second[3] >= 0 && input->second[3] != weights.dim(2))
            return "TensorFlow has no integer kernel for convolutions in groups";
        if (node.op == "MatMul" && node.attributes.get_bool("transpose_a")) return "its input is transposed";
        const std::string padding = node.attributes.get_string("padding");
        if (padding == "EXPLICIT" && node.attributes.get_ints("explicit_paddings").size() != 8)
            return "its paddings are not understood";
        return "";
    }

    // The node that reads `node` and nobody else does.
    TfNode* only_reader(const TfNode& node) const {
        return readers_.has_single_reader(node) ? readers_.of(node)[0].node : nullptr;
    }

    bool same_shape(const TfNode& a, const TfInput& b) const {
        const auto first = shapes_.find(a.name);
        const auto second = shapes_.find(b.node);
        return b.port == 0 && first != shapes_.end() && second != shapes_.end() &&
               first->second == second->second;
    }

    Fused fuse(TfNode& product) {
        Fused fused{.product = &product};
        taken_.insert(&product);
        const Channels channels = *output_channels(graph_, product);
        TfNode* reader = only_reader(product);
        if (reader != nullptr && !excluded(*reader)) {
            const std::optional<Bias> bias = bias_of(graph_, *reader, channels);
            if (bias && reader->inputs[bias->data_input].node == product.name) fused.bias = reader;
        }
        if (product.op == "Conv2D") add_sum(fused);
        reader = only_reader(fused.last());
        if (reader != nullptr && !excluded(*reader)) {
            const bool rectified = reader->op == "Relu" || reader->op == "Relu6";
            const bool curved = product.op == "MatMul" && (reader->op == "Tanh" || reader->op == "Sigmoid");
            if (rectified || curved) {
                fused.activation = reader;
                fused.curve = reader->op;
            }
        }
        if (fused.activation == nullptr && product.op == "MatMul") add_gelu(fused);
        // A sum comes in 8 bits only; what is wanted is wanted in full precision.
        if (fused.sum != nullptr && wanted_.contains(fused.last().name))
            fused.sum = fused.activation = nullptr;
        for (TfNode* node : fused.nodes()) taken_.insert(node);
        return fused;
    }

    void add_gelu(Fused& fused) {
        std::optional<Gelu> gelu = gelu_behind(graph_, readers_, fused.last(), wanted_);
        if (!gelu || std::ranges::any_of(gelu->nodes, [&](const TfNode* node) { return excluded(*node); }))
            return;
        fused.activation = &gelu->last();
        fused.curve = gelu->exact ? "GeluExact" : "GeluApproximate";
        gelu->nodes.pop_back();
        fused.inside = std::move(gelu->nodes);
    }

    void add_sum(Fused& fused) {
        TfNode* reader = only_reader(fused.last());
        if (reader == nullptr || excluded(*reader) || taken_.contains(reader)) return;
        const bool sum = reader->op == "Add" || reader->op == "AddV2" || reader->op == "AddN";
        if (!sum || reader->data_inputs() != 2) return;
        const size_t own = reader->inputs[0].node == fused.last().name ? 0 : 1;
        const TfInput& other = reader->inputs[1 - own];
        const TfNode* source = graph_.producer(other);
        if (other.node == fused.last().name || source == nullptr || source->op == "Const") return;
        if (!same_shape(fused.last(), other)) return;
        fused.sum = reader;
        fused.summand = other;
    }

    bool can_pass(const TfNode& node) const {
        if (excluded(node) || chosen_float(node) || node.attributes.get_type("T", kFloat) != kFloat ||
            node.data_inputs() == 0)
            return false;
        if (node.op == "Reshape" || node.op == "Squeeze" || node.op == "Pad") return true;
        if (node.op == "ConcatV2")
            return constant_of(graph_, node.inputs[node.data_inputs() - 1]).has_value();
        const std::vector<int64_t> kernel = node.attributes.get_ints("ksize");
        return kernel.size() == 4 && kernel[0] == 1 && kernel[3] == 1 &&
               node.attributes.get_string("data_format", "NHWC") == "NHWC" &&
               node.attributes.get_string("padding") != "EXPLICIT";
    }

    TfGraph& graph_;
    const IslandOptions& options_;
    Wanted wanted_;
    Readers readers_;
    SymbolicShapes shapes_;
    Islands islands_;
    std::set<const TfNode*> taken_;
};

}  // namespace

bool is_passive(const TfNode& node) { return std::ranges::find(kPassive, node.op) != kPassive.end(); }

size_t passive_tensors(const TfNode& passive) {
    return passive.op == "ConcatV2" ? passive.data_inputs() - 1 : 1;
}

TfNode& Fused::last() const {
    if (activation != nullptr) return *activation;
    if (sum != nullptr) return *sum;
    return bias != nullptr ? *bias : *product;
}

std::vector<TfNode*> Fused::nodes() const {
    std::vector<TfNode*> nodes;
    for (TfNode* node : {product, bias, sum, activation})
        if (node != nullptr) nodes.push_back(node);
    nodes.insert(nodes.end(), inside.begin(), inside.end());
    return nodes;
}

Islands find_islands(TfGraph& graph, const IslandOptions& options) { return Search(graph, options).run(); }

void prune_passive(TfGraph& graph, Islands& islands) {
    std::set<const TfNode*> sources;
    std::set<const TfNode*> sinks;
    for (const Fused& fused : islands.fused) {
        sources.insert(&fused.last());
        sinks.insert(fused.product);
        if (fused.sum != nullptr) sinks.insert(fused.sum);
    }
    const auto uses = graph.uses();
    const auto carries_data = [](const TfNode& node, size_t index) { return index < passive_tensors(node); };
    const auto misplaced = [&](TfNode* node) {
        for (size_t i = 0; i < node->inputs.size() && carries_data(*node, i); ++i) {
            TfNode* before = graph.producer(node->inputs[i]);
            if (node->inputs[i].port != 0 || (!sources.contains(before) && !islands.passive.contains(before)))
                return true;
        }
        const auto found = uses.find(node->name);
        if (found == uses.end()) return true;
        return std::ranges::none_of(found->second, [&](const TfGraph::Use& use) {
            return (sinks.contains(use.node) && (use.index == 0 || !is_product(*use.node))) ||
                   (islands.passive.contains(use.node) && carries_data(*use.node, use.index));
        });
    };
    while (std::erase_if(islands.passive, misplaced) > 0) continue;
}

std::vector<std::string> tensors_to_observe(const Islands& islands) {
    std::set<std::string> names;
    const auto observe = [&](const TfInput& input) {
        // Pools and their like have the range of what they read.
        const bool passed = std::ranges::any_of(islands.passive,
                                                [&](const TfNode* node) { return node->name == input.node; });
        if (!passed) names.insert(input.text());
    };
    for (const TfNode* node : islands.passive)
        for (size_t i = 0; i < passive_tensors(*node); ++i) observe(node->inputs[i]);
    for (const Fused& fused : islands.fused) {
        observe(fused.product->inputs[0]);
        if (fused.sum == nullptr) continue;
        // Either branch may be the one that adds the other, when choices leave one of them in floats.
        for (const TfInput& branch : fused.sum->inputs)
            if (!branch.control) observe(branch);
        observe(TfInput::of(fused.last().name));
    }
    return {names.begin(), names.end()};
}

}  // namespace kilter::tensorflow
