// Batch normalization with constant statistics is a scale and a shift per channel: both go into the product before it.
#include <array>
#include <cmath>

#include "formats/tensorflow/rewrites/affine.h"

namespace kilter::tensorflow {
namespace {

struct Statistics {
    std::vector<double> mean, variance, gamma, beta;
    double epsilon = 0.0;

    Affine affine() const {
        Affine result = Affine::identity({static_cast<int64_t>(mean.size()), 4});
        result.add(mean, -1.0);
        for (size_t c = 0; c < mean.size(); ++c) {
            const double factor = gamma[c] / std::sqrt(variance[c] + epsilon);
            result.scale[c] *= factor;
            result.shift[c] *= factor;
        }
        result.add(beta);
        return result;
    }
};

bool is_fused_batch_norm(const TfNode& node) {
    return node.op == "FusedBatchNorm" || node.op == "FusedBatchNormV2" || node.op == "FusedBatchNormV3";
}

// The four vectors from the inputs at these places.
std::optional<Statistics> statistics(const TfGraph& graph, const TfNode& node, const Channels& channels,
                                     std::array<size_t, 4> mean_variance_gamma_beta) {
    std::array<std::vector<double>, 4> vectors;
    for (size_t i = 0; i < 4; ++i) {
        auto vector = per_channel(graph, node.inputs[mean_variance_gamma_beta[i]], channels);
        if (!vector) return std::nullopt;
        vectors[i] = std::move(*vector);
    }
    return Statistics{std::move(vectors[0]), std::move(vectors[1]), std::move(vectors[2]),
                      std::move(vectors[3])};
}

std::optional<Affine> normalization(const TfGraph& graph, const TfNode& node, const Channels& channels) {
    if (node.data_inputs() != 5) return std::nullopt;
    if (is_fused_batch_norm(node)) {
        if (node.attributes.get_bool("is_training", true) ||
            node.attributes.get_string("data_format", "NHWC") != "NHWC")
            return std::nullopt;
        auto found = statistics(graph, node, channels, {3, 4, 1, 2});
        if (!found) return std::nullopt;
        found->epsilon = node.attributes.get_float("epsilon", 0.0001F);
        return found->affine();
    }
    auto found = statistics(graph, node, channels, {1, 2, 4, 3});
    if (!found) return std::nullopt;
    found->epsilon = node.attributes.get_float("variance_epsilon");
    if (!node.attributes.get_bool("scale_after_normalization", true))
        found->gamma.assign(found->gamma.size(), 1.0);
    return found->affine();
}

// Only the normalized values may be read, not the statistics that the node passes on.
bool only_first_output_is_read(const Readers& readers, const TfNode& node) {
    for (const TfGraph::Use& use : readers.of(node))
        if (use.node->inputs[use.index].port != 0) return false;
    return true;
}

// Add(Mul(product, factor), shift) or Sub(Mul(product, factor), shift); nothing when `node` is no such sum.
std::optional<std::pair<Product, Affine>> exploded(TfGraph& graph, const Readers& readers,
                                                   const TfNode& sum) {
    const bool difference = sum.op == "Sub";
    if ((sum.op != "Add" && sum.op != "AddV2" && sum.op != "BiasAdd" && !difference) ||
        sum.data_inputs() != 2)
        return std::nullopt;
    for (size_t i = 0; i < (difference ? 1U : 2U); ++i) {
        const TfNode* multiplied = graph.producer(sum.inputs[i]);
        if (multiplied == nullptr || multiplied->op != "Mul" || multiplied->data_inputs() != 2 ||
            !readers.has_single_reader(*multiplied))
            continue;
        for (size_t j = 0; j < 2; ++j) {
            const std::optional<Product> product = product_of(graph, readers, multiplied->inputs[j]);
            if (!product) continue;
            const auto factor = per_channel(graph, multiplied->inputs[1 - j], product->channels);
            const auto shift = per_channel(graph, sum.inputs[1 - i], product->channels);
            if (!factor || !shift) continue;
            Affine affine = Affine::identity(product->channels);
            affine.multiply(*factor);
            affine.add(*shift, difference ? -1.0 : 1.0);
            return std::pair(*product, std::move(affine));
        }
    }
    return std::nullopt;
}

bool fold_normalization(TfGraph& graph, const Readers& readers, TfNode& node) {
    if (is_fused_batch_norm(node) || node.op == "BatchNormWithGlobalNormalization") {
        if (!only_first_output_is_read(readers, node) || node.inputs.empty()) return false;
        const std::optional<Product> product = product_of(graph, readers, node.inputs[0]);
        if (!product) return false;
        const std::optional<Affine> affine = normalization(graph, node, product->channels);
        if (!affine) return false;
        fold(graph, *product, *affine, node);
        return true;
    }
    if (const auto found = exploded(graph, readers, node)) {
        fold(graph, found->first, found->second, node);
        return true;
    }
    return false;
}

}  // namespace

int fold_batch_norms(TfGraph& graph, const Wanted& wanted) {
    return rewrite(graph, wanted, [&](const Readers& readers, TfNode& node) {
        return fold_normalization(graph, readers, node);
    });
}

}  // namespace kilter::tensorflow
