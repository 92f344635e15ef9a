// Weights that several operators share: each quantizes its own.
#include "formats/tensorflow/rewrites/affine.h"

namespace kilter::tensorflow {

int split_shared_inputs(TfGraph& graph) {
    std::unordered_map<std::string, int> readers;
    int count = 0;
    for (TfNode* node : graph.sorted()) {
        const bool biased = node->op == "BiasAdd";
        if ((!is_product(*node) && !biased) || node->data_inputs() != 2) continue;
        const TfNode* shared = graph.producer(node->inputs[1]);
        if (shared == nullptr || shared->op != "Const") continue;
        const int number = ++readers[shared->name];
        if (number == 1) continue;
        TfNode copy = *shared;
        copy.name = graph.fresh_name(shared->name + "_" + std::to_string(number));
        node->inputs[1] = TfInput::of(copy.name);
        graph.add(std::move(copy));
        ++count;
    }
    return count;
}

}  // namespace kilter::tensorflow
