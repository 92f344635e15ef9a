// A normalization that was written out as subtract, divide, multiply and add.
#include "formats/tensorflow/rewrites/affine.h"

namespace kilter::tensorflow {
namespace {

// The node that the first input of `node` reads, when it is of this kind and nobody else reads it.
TfNode* below(TfGraph& graph, const Readers& readers, const TfNode& node, std::string_view op) {
    if (node.data_inputs() != 2) return nullptr;
    TfNode* found = graph.producer(node.inputs[0]);
    return found != nullptr && found->op == op && readers.has_single_reader(*found) ? found : nullptr;
}

bool fold_division(TfGraph& graph, const Readers& readers, TfNode& sum) {
    if (sum.op != "BiasAdd" && sum.op != "Add" && sum.op != "AddV2") return false;
    const TfNode* multiplied = below(graph, readers, sum, "Mul");
    const TfNode* divided = multiplied == nullptr ? nullptr : below(graph, readers, *multiplied, "RealDiv");
    const TfNode* difference = divided == nullptr ? nullptr : below(graph, readers, *divided, "Sub");
    if (difference == nullptr || difference->data_inputs() != 2) return false;
    const std::optional<Product> product = product_of(graph, readers, difference->inputs[0]);
    if (!product) return false;
    const auto mean = per_channel(graph, difference->inputs[1], product->channels);
    const auto deviation = per_channel(graph, divided->inputs[1], product->channels);
    const auto gamma = per_channel(graph, multiplied->inputs[1], product->channels);
    const auto beta = per_channel(graph, sum.inputs[1], product->channels);
    if (!mean || !deviation || !gamma || !beta) return false;
    Affine affine = Affine::identity(product->channels);
    affine.add(*mean, -1.0);
    affine.divide(*deviation);
    affine.multiply(*gamma);
    affine.add(*beta);
    fold(graph, *product, affine, sum);
    return true;
}

}  // namespace

int fold_subdivmul_batch_norms(TfGraph& graph, const Wanted& wanted) {
    return rewrite(graph, wanted,
                   [&](const Readers& readers, TfNode& node) { return fold_division(graph, readers, node); });
}

}  // namespace kilter::tensorflow
