// Constants that are still dequantized after the lowering become floats: nothing computes with their integers.
#include "engine/ref/executor.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {

//! Exact. Runs after lower_quantized, which wants to see the integers.
bool fold_dequantized(Graph& graph) {
    return rewrite(graph, "DequantizeLinear", [](Graph& g, Node& node) {
        std::vector<Tensor> inputs;
        for (const Value* value : node.inputs()) {
            const Tensor* tensor = constant_of(g, value);
            if (value != nullptr && tensor == nullptr) return false;
            inputs.push_back(tensor == nullptr ? Tensor() : *tensor);
        }
        g.make_constant(node.output(), ref::run_node(node, inputs)[0]);
        return true;
    });
}

}  // namespace kilter
