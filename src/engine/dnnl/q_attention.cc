// QAttention: two batched integer products around a softmax that writes u8, on strided heads.
#include <algorithm>

#include "engine/builder.h"
#include "engine/dnnl/views.h"
#include "engine/native/q_attention.h"
#include "ops/integer_result.h"

namespace kilter::engine {
namespace {

using Desc = dnnl::memory::desc;

constexpr float kProbabilityScale = 1.0F / 255.0F;

bool usable(const dnnl::matmul::primitive_desc& pd) { return pd && !is_reference(pd.impl_info_str()); }

dnnl::matmul::primitive_desc product(const Desc& a, const Desc& b, const Desc& y,
                                     const dnnl::primitive_attr& attributes) {
    const Desc b_any(b.get_dims(), b.get_data_type(), dnnl::memory::format_tag::any);
    dnnl::matmul::primitive_desc pd(cpu(), a, b, y, attributes, true);
    if (!usable(pd)) pd = dnnl::matmul::primitive_desc(cpu(), a, b_any, y, attributes, true);
    if (usable(pd)) return pd;
    const Desc a_dense(a.get_dims(), a.get_data_type(), dnnl::memory::format_tag::abcd);
    return {cpu(), a_dense, b_any, y, attributes, true};
}

dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

bool build(Builder& builder, const Node& node) {
    if (build_q_attention(builder, node)) return true;
    const Value* mask = node.input(3);
    const Attributes& given = node.attributes;
    const ResultType type = result_type(given);
    if (builder.dtype(node.input(1)) != DType::i8 || builder.dtype(node.input(2)) != DType::i8) return false;
    const Shape& y_shape = builder.shape(node.output(0));
    const Array q = plain(builder, node.input(0));
    const Array k = plain(builder, node.input(1));
    const Array v = plain(builder, node.input(2));
    const Desc k_seen = given.get_int("k_transposed") != 0 ? k.desc : transposed(k.desc);
    Shape scores_shape = y_shape;
    scores_shape[3] = k_seen.get_dims()[3];
    const Desc scores_desc = dense_desc(DType::f32, scores_shape);
    const Desc weights_desc = dense_desc(DType::u8, scores_shape);

    dnnl::primitive_attr scored = user_scratchpad();
    scored.set_scales_mask(DNNL_ARG_WEIGHTS, 0);
    const auto q_zero_point = static_cast<int32_t>(given.get_int("q_zero_point"));
    if (q_zero_point != 0) scored.set_zero_points_mask(DNNL_ARG_SRC, 0);
    Desc mask_desc;
    if (mask != nullptr) {
        Shape dims = builder.shape(mask);
        dims.insert(dims.begin(), 4 - dims.size(), 1);
        mask_desc = dense_desc(DType::f32, dims);
        dnnl::post_ops after;
        after.append_binary(dnnl::algorithm::binary_add, mask_desc);
        scored.set_post_ops(after);
    }
    const auto first = product(q.desc, k_seen, scores_desc, scored);
    dnnl::primitive_attr rounded = user_scratchpad();
    rounded.set_scales_mask(DNNL_ARG_DST, 0);
    const dnnl::softmax_forward::primitive_desc softmax(cpu(), dnnl::prop_kind::forward_inference,
                                                        dnnl::algorithm::softmax_accurate, scores_desc,
                                                        weights_desc, 3, rounded, true);
    dnnl::primitive_attr weighted = user_scratchpad();
    weighted.set_scales_mask(DNNL_ARG_WEIGHTS, 0);
    if (type.dtype != DType::f32) {
        weighted.set_scales_mask(DNNL_ARG_DST, 0);
        if (type.zero_point != 0) weighted.set_zero_points_mask(DNNL_ARG_DST, 0);
    }
    // Heads are written side by side, as the projection that follows reads them.
    const Desc y_desc(y_shape, dnnl_type(type.dtype),
                      {y_shape[2] * y_shape[1] * y_shape[3], y_shape[3], y_shape[1] * y_shape[3], 1});
    auto second = product(weights_desc, v.desc, y_desc, weighted);
    if (!usable(second)) second = product(weights_desc, v.desc, dense_desc(type.dtype, y_shape), weighted);
    if (!usable(first) || !usable(second) || !softmax) return false;

    const auto number = [&](float value) { return builder.constant_array(Tensor::of<float>({1}, {value})); };
    const auto integer = [&](int32_t value) {
        return builder.constant_array(Tensor::of<int32_t>({1}, {value}));
    };
    const float qk = given.get_float("q_scale", 1.0F) * given.get_float("k_scale", 1.0F);
    const Array scores = builder.temporary(DType::f32, scores_shape, scores_desc);
    std::vector<Builder::Argument> arguments{
        {DNNL_ARG_SRC, fitted(builder, q, q.desc, first.src_desc())},
        {DNNL_ARG_WEIGHTS, fitted(builder, k, k_seen, first.weights_desc())},
        {DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, number(qk * given.get_float("scale", 1.0F))},
        {DNNL_ARG_DST, scores}};
    if (q_zero_point != 0)
        arguments.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, integer(q_zero_point));
    if (mask != nullptr) {
        Array operand = builder.dense(mask);
        operand.desc = mask_desc;
        arguments.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, operand);
    }
    builder.add_primitive(dnnl::matmul(first), first, std::move(arguments));
    const Array weights = builder.temporary(DType::u8, scores_shape, weights_desc);
    builder.add_primitive(dnnl::softmax_forward(softmax), softmax,
                          {{DNNL_ARG_SRC, scores},
                           {DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, number(kProbabilityScale)},
                           {DNNL_ARG_DST, weights}});
    arguments = {{DNNL_ARG_SRC, weights},
                 {DNNL_ARG_WEIGHTS, fitted(builder, v, v.desc, second.weights_desc())},
                 {DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
                  number(given.get_float("v_scale", 1.0F) * kProbabilityScale)},
                 {DNNL_ARG_DST, builder.result(node.output(0), second.dst_desc())}};
    if (type.dtype != DType::f32) {
        arguments.emplace_back(DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, number(given.get_float("y_scale", 1.0F)));
        if (type.zero_point != 0)
            arguments.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST,
                                   integer(static_cast<int32_t>(type.zero_point)));
    }
    builder.add_primitive(dnnl::matmul(second), second, std::move(arguments));
    return true;
}

KILTER_KERNEL("QAttention", build, kKilterDomain);

}  // namespace
}  // namespace kilter::engine
