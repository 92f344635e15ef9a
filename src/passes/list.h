// Every pass of `optimize`, declared once; each lives in a file of its own name, whose head says what it
// needs and promises.
#pragma once

#include "kilter/graph/graph.h"

namespace kilter {

bool inline_constant_if(Graph& graph);
bool fold_constants(Graph& graph);
bool remove_identities(Graph& graph);
bool merge_duplicates(Graph& graph);
bool simplify_reshapes(Graph& graph);
bool sink_transposes(Graph& graph);
bool sink_shapes(Graph& graph);
bool simplify_clips(Graph& graph);
bool recognize_activations(Graph& graph);
bool recognize_gelu(Graph& graph);
bool recognize_layer_norm(Graph& graph);
bool fuse_pad(Graph& graph);
bool lower_matmul(Graph& graph);
bool recognize_attention(Graph& graph);
bool fold_batch_norm(Graph& graph);
bool fold_scale_shift(Graph& graph);
bool fuse_post_ops(Graph& graph);
bool sink_dequantize(Graph& graph);
bool lower_quantized(Graph& graph);
bool tabulate_quantized(Graph& graph);
bool fold_dequantized(Graph& graph);

//! Not part of `optimize`: for CPUs that do not multiply bfloat16.
bool widen_bf16(Graph& graph);

}  // namespace kilter
