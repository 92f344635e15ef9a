// Post-ops: what kilter's fused operators (kilter.Conv, kilter.ConvTranspose, kilter.MatMul) do to their result before storing it.
// Attribute `post_ops` names them in order, `post_alphas` and `post_betas` hold one parameter each per entry (0 when unused);
// every binary entry reads the next input of the node, after the operator's own `fixed_inputs`, with NumPy broadcasting.
#pragma once

#include <string>
#include <vector>

#include "kilter/graph/graph.h"

namespace kilter {

struct PostOp {
    //! Unary: relu, leaky_relu(alpha), clip(alpha=min, beta=max), sigmoid, tanh, gelu_erf, gelu_tanh, swish(alpha),
    //! hard_swish, hard_sigmoid(alpha, beta), elu(alpha), mish, exp, abs, sqrt, square, linear(alpha*x + beta).
    //! Binary with operand o: add (x+o), sub (x-o), mul (x*o), div (x/o), max, min.
    std::string name;
    float alpha = 0.0F;
    float beta = 0.0F;
    int operand = -1;  // input index of a binary post-op, -1 for unary ones
    bool is_binary() const { return operand >= 0; }
};

bool is_binary_post_op(std::string_view name);
bool is_unary_post_op(std::string_view name);

//! Reads the post-ops of a fused node; throws Error when the attributes do not fit together.
//! `fixed_inputs` is 3 for kilter.Conv, kilter.ConvTranspose and kilter.MatMul (x, weights, optional bias).
std::vector<PostOp> post_ops(const Node& node, int fixed_inputs = 3);

//! Appends one entry; `operand` (an input value of the graph) is required for binary names and must be null otherwise.
void append_post_op(Graph& graph, Node& node, std::string_view name, float alpha = 0, float beta = 0,
                    Value* operand = nullptr, int fixed_inputs = 3);

//! One unary post-op on one number, in double: the meaning that all kernels follow.
double apply_unary(const PostOp& op, double x);
double apply_binary(const PostOp& op, double x, double operand);

//! Applies all post-ops to `result` in place. `inputs` are the node's inputs.
void apply_post_ops(const std::vector<PostOp>& ops, Tensor& result, const std::vector<Tensor>& inputs);

}  // namespace kilter
