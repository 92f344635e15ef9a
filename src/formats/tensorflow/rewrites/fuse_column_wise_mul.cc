// A factor per channel behind a product is a factor per column of its weights.
#include "formats/tensorflow/rewrites/affine.h"

namespace kilter::tensorflow {
namespace {

bool fuse_factor(TfGraph& graph, const Readers& readers, const Wanted& wanted, TfNode& multiplied) {
    if (multiplied.op != "Mul" || multiplied.data_inputs() != 2) return false;
    for (size_t i = 0; i < 2; ++i) {
        const std::optional<Product> product = product_of(graph, readers, multiplied.inputs[i]);
        if (!product || product->bias != nullptr) continue;
        const auto factor = per_channel(graph, multiplied.inputs[1 - i], product->channels);
        if (!factor) continue;
        scale_weights(graph, *product->node, *factor);
        // The product keeps its name, under which users exclude it and plans know it.
        const TfInput scaled = TfInput::of(product->node->name);
        if (!wanted.contains(multiplied.name)) {
            graph.replace_uses(TfInput::of(multiplied.name), scaled);
            return true;
        }
        const TfType type = multiplied.attributes.get_type("T", kFloat);
        multiplied.op = "Identity";
        multiplied.attributes = {};
        multiplied.attributes.set("T", type);
        multiplied.inputs = {scaled};
        return true;
    }
    return false;
}

}  // namespace

int fuse_column_wise_mul(TfGraph& graph, const Wanted& wanted) {
    return rewrite(graph, wanted, [&](const Readers& readers, TfNode& node) {
        return fuse_factor(graph, readers, wanted, node);
    });
}

}  // namespace kilter::tensorflow
