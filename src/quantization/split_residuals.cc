#include "passes/emit_post_ops.h"
#include "passes/rewrite.h"
#include "quantization/recipes.h"

namespace kilter {

//! The cut-off operators must not be fused again before the graph is quantized: run it after `optimize`.
bool split_residuals(Graph& graph) {
    return rewrite(graph, {"kilter.Conv", "kilter.ConvTranspose", "kilter.MatMul"}, [](Graph& g, Node& node) {
        const std::vector<PostOp> ops = post_ops(node);
        for (size_t i = 0; i < ops.size(); ++i) {
            if (!ops[i].is_binary()) continue;
            const Value* operand = node.input(static_cast<size_t>(ops[i].operand));
            if (g.constant(operand) != nullptr || !same_shape(operand, node.output())) continue;
            split_post_ops(g, node, i);
            return true;
        }
        return false;
    });
}

}  // namespace kilter
