// Post-ops spelled out as standard ONNX operators, for export and for splitting fused operators.
#pragma once

#include "ops/post_ops.h"

namespace kilter {

//! The operators that apply `op` to `x`, in forms that opset 13 has; `operand` belongs to binary ones. Names start with `stem`.
Value* emit_post_op(Graph& graph, const PostOp& op, Value* x, Value* operand, const std::string& stem);

//! One operator with `stem` in its name and an f32-like result of the type of `like`.
Value* emit(Graph& graph, std::string_view op, std::vector<Value*> inputs, const std::string& stem,
            Attributes attributes = {});

//! Cuts the post-ops of `node` before entry `from`; what was cut off follows as operators of its own and makes the old result.
void split_post_ops(Graph& graph, Node& node, size_t from);

}  // namespace kilter
