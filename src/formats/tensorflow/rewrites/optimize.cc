// The order of the rewrites.
#include "formats/tensorflow/rewrites/rewrites.h"

namespace kilter::tensorflow {

void optimize_for_quantization(TfGraph& graph, std::span<const std::string> inputs,
                               std::span<const std::string> outputs) {
    Wanted wanted;
    for (const std::string& output : outputs) wanted.insert(TfInput(output).node);
    for (const std::string& input : inputs) wanted.insert(TfInput(input).node);
    strip_unused(graph, inputs, outputs);
    remove_training_nodes(graph, inputs, wanted);
    split_shared_inputs(graph);
    // One folding makes room for the next: a factor behind a folded normalization, for example.
    flatten_batch_products(graph, wanted);
    int changes = 1;
    while (changes > 0) {
        changes = mkl_fuse_pad_and_conv(graph, wanted);
        changes += fold_subdivmul_batch_norms(graph, wanted);
        changes += fold_batch_norms(graph, wanted);
        changes += fold_convolutionwithbias_mul(graph, wanted);
        changes += fuse_column_wise_mul(graph, wanted);
    }
    strip_unused(graph, inputs, outputs);
}

}  // namespace kilter::tensorflow
