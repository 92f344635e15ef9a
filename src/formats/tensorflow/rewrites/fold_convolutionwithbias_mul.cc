// Inception-ResNet scales a branch before it is added: the scalar moves into the branch's last convolution.
#include "formats/tensorflow/rewrites/affine.h"

namespace kilter::tensorflow {
namespace {

bool is_sum(const TfNode& node) {
    return (node.op == "Add" || node.op == "AddV2" || node.op == "AddN") && node.data_inputs() == 2;
}

bool fold_factor(TfGraph& graph, const Readers& readers, TfNode& multiplied) {
    if (multiplied.op != "Mul" || multiplied.data_inputs() != 2 || !readers.has_single_reader(multiplied) ||
        !is_sum(*readers.of(multiplied)[0].node))
        return false;
    for (size_t i = 0; i < 2; ++i) {
        const std::optional<Product> product = product_of(graph, readers, multiplied.inputs[i]);
        const std::optional<Tensor> factor = constant_expression(graph, multiplied.inputs[1 - i]);
        if (!product || product->bias == nullptr || !is_convolution(*product->node) || !factor ||
            factor->size() != 1)
            continue;
        Affine affine = Affine::identity(product->channels);
        affine.multiply(*per_channel(graph, multiplied.inputs[1 - i], product->channels));
        fold(graph, *product, affine, multiplied);
        return true;
    }
    return false;
}

}  // namespace

int fold_convolutionwithbias_mul(TfGraph& graph, const Wanted& wanted) {
    return rewrite(graph, wanted,
                   [&](const Readers& readers, TfNode& node) { return fold_factor(graph, readers, node); });
}

}  // namespace kilter::tensorflow
