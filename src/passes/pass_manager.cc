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
    Pass{"sink_dequantize", sink_dequantize,
         "DequantizeLinear moves behind operators that only move numbers"},
    Pass{"lower_quantized", lower_quantized,
         "operators between DequantizeLinear and QuantizeLinear become integer operators"},
    Pass{"tabulate_quantized", tabulate_quantized,
         "functions of one quantized value become tables, or disappear"},
    Pass{"fold_dequantized", fold_dequantized, "constants that no integer operator reads become floats"},
};
// The last passes of the list: those that fuse, those that lower Q/DQ to integer operators, and the one that clears up.
constexpr size_t kFusing = 1;
constexpr size_t kLowering = 3;
constexpr size_t kClearing = 1;

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
    const auto simplifying = all.first(all.size() - kFusing - kLowering - kClearing);
    const auto fusing = all.subspan(simplifying.size(), kFusing);
    const auto lowering = all.subspan(simplifying.size() + kFusing, kLowering);
    run_until_stable(graph, simplifying);
    if (run_until_stable(graph, fusing)) run_until_stable(graph, simplifying);
    bool lowered = run_until_stable(graph, lowering);
    lowered = run_until_stable(graph, all.last(kClearing)) || lowered;
    if (lowered) run_until_stable(graph, simplifying);
    graph.sort();
    infer_types(graph);
}

}  // namespace kilter
