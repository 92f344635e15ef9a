// The passes in their order, and the loop that runs them.
#include <array>

#include "kilter/passes/passes.h"
#include "passes/list.h"

namespace kilter {
namespace {

// The simplifying passes run until none finds work; only then do the fusing ones start, because a fused
// operator is closed to further folding: what follows its post-ops can no longer move into its weights.
constexpr std::array kPasses{
    Pass{"inline_constant_if", inline_constant_if, "If with a constant condition becomes its branch"},
    Pass{"fold_constants", fold_constants,
         "operators on constants, and shapes that are known, are computed once"},
    Pass{"remove_identities", remove_identities, "operators that return their input disappear"},
    Pass{"merge_duplicates", merge_duplicates, "equal computations and equal small constants are kept once"},
    Pass{"simplify_reshapes", simplify_reshapes,
         "chains of Reshape, Squeeze, Unsqueeze and Flatten become one Reshape"},
    Pass{"sink_transposes", sink_transposes,
         "transposes move towards the outputs, where they merge and cancel"},
    Pass{"sink_shapes", sink_shapes, "Shape asks the last of several values of one shape"},
    Pass{"simplify_clips", simplify_clips, "Clip, Relu, Min and Max in a row become one Clip"},
    Pass{"recognize_activations", recognize_activations,
         "Swish, HardSigmoid, HardSwish and Mish from their spelled-out forms"},
    Pass{"recognize_gelu", recognize_gelu, "Gelu from its erf and tanh forms"},
    Pass{"recognize_layer_norm", recognize_layer_norm, "LayerNormalization from its spelled-out forms"},
    Pass{"fuse_pad", fuse_pad, "Pad with zeros moves into the convolution or pooling behind it"},
    Pass{"lower_matmul", lower_matmul,
         "MatMul and Gemm become kilter.MatMul, with the transposes and the bias around them"},
    Pass{"recognize_attention", recognize_attention,
         "scaled dot-product attention from its spelled-out form"},
    Pass{"fold_batch_norm", fold_batch_norm, "BatchNormalization moves into the weights before it"},
    Pass{"fold_scale_shift", fold_scale_shift,
         "Mul, Div, Add and Sub by constants move into the weights before them"},
    Pass{"fuse_post_ops", fuse_post_ops,
         "residuals and activations become post-ops of the operator before them"},
};
constexpr size_t kFusing = 1;  // the last so many passes fuse

// Every round either shortens the graph or is the last one; the bound only guards against two passes undoing
// each other.
constexpr int kMaxRounds = 32;

bool run_until_stable(Graph& graph, std::span<const Pass> list) {
    bool changed = false;
    for (int round = 0; round < kMaxRounds; ++round) {
        bool again = false;
        for (const Pass& pass : list) {
            if (!pass.run(graph)) continue;
            infer_types(graph);
            again = true;
        }
        if (!again) return changed;
        changed = true;
    }
    return changed;
}

}  // namespace

std::span<const Pass> passes() { return kPasses; }

void optimize(Graph& graph) {
    verify(graph);  // passes rely on the arity and the attribute types of every known operator
    graph.remove_dead();
    infer_types(graph);
    const std::span<const Pass> all = passes();
    const auto simplifying = all.first(all.size() - kFusing);
    const auto fusing = all.last(kFusing);
    run_until_stable(graph, simplifying);
    if (run_until_stable(graph, fusing)) run_until_stable(graph, simplifying);
    graph.sort();
    infer_types(graph);
}

}  // namespace kilter
