// The float32 half of the integer operators (QConv, QMatMul, …): what happens to an exact integer sum until it is stored.
// The order of the roundings is that of oneDNN's kernels, so that both give the same bits: docs/arithmetic.md, "Requantization".
#pragma once

#include <span>
#include <vector>

#include "ops/op.h"
#include "ops/post_ops.h"

namespace kilter {

//! Element type, scale and zero point of a result: attributes y_dtype, y_scale and y_zero_point. f32 has no scale.
struct ResultType {
    DType dtype = DType::f32;
    float inverse_scale = 1.0F;
    float zero_point = 0.0F;
};
ResultType result_type(const Attributes& attributes);

//! saturate(round_half_even(t·(1/scale) + zero_point)), the product and the sum rounded one after the other.
int32_t requantize(float t, const ResultType& type);

//! One post-op in float32, as the kernels compute it. Transcendental ones are only as close as two libraries are.
float apply_post_op(const PostOp& op, float t, float operand);

//! How an integer sum becomes a float: t = sum·scale[channel] + bias[channel], then the post-ops.
struct FloatTail {
    std::vector<float> scales;  // one, or one per channel: the products of the operands' scales
    Tensor bias;                // f32; empty, one number, or one per channel
    std::vector<PostOp> ops;
    std::vector<float> operand_scales;  // per binary post-op; 0: the operand is f32
    std::vector<int64_t> operand_zero_points;
};
//! Reads post_ops, operand_scales and operand_zero_points; throws when they do not fit together.
FloatTail float_tail(const Node& node);

//! Applies the post-ops of `tail` in place; `inputs` are the node's inputs.
void apply_post_ops(const FloatTail& tail, std::span<float> values, const Shape& shape,
                    const std::vector<Tensor>& inputs);

//! Stores floats as u8 or i8.
void requantize(std::span<const float> values, const ResultType& type, void* result);

//! Makes output 0 from the sums (integers held as doubles) of a result whose channels are its axis `channel_axis`.
void store_result(KernelContext& context, const Tensor& sums, size_t channel_axis, const FloatTail& tail);

//! An 8-bit tensor without its zero point, as doubles: every sum of products of these is exact.
Tensor centered_reals(const Tensor& tensor, int64_t zero_point, std::string_view what);

//! x_scale·scale for every entry, each product rounded to float32.
std::vector<float> scale_products(float x_scale, std::vector<float> scales);

//! The attributes that describe results and operands of integer operators, for their schemas.
std::vector<AttributeSpec> with_result_attributes(std::vector<AttributeSpec> attributes);

}  // namespace kilter
