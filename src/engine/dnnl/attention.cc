// Scaled dot-product attention on strided heads: two batched products and a softmax, no transposed copies.
#include <algorithm>

#include "engine/builder.h"
#include "engine/dnnl/post_ops.h"
#include "engine/dnnl/views.h"

namespace kilter::engine {
namespace {

using Desc = dnnl::memory::desc;

dnnl::matmul::primitive_desc product(const Desc& a, const Desc& b, const Desc& y,
                                     const dnnl::primitive_attr& attributes) {
    dnnl::matmul::primitive_desc pd(cpu(), a, b, y, attributes, true);
    if (pd && !is_reference(pd.impl_info_str())) return pd;
    const auto any = [](const Desc& desc) { return any_desc(DType::f32, desc.get_dims()); };
    pd = dnnl::matmul::primitive_desc(cpu(), dense_desc(DType::f32, a.get_dims()), b, y, attributes, true);
    if (pd && !is_reference(pd.impl_info_str())) return pd;
    return {cpu(), dense_desc(DType::f32, a.get_dims()), any(b), y, attributes, true};
}

bool build(Builder& builder, const Node& node) {
    const Value* mask = node.input(3);
    for (const size_t index : {size_t{0}, size_t{1}, size_t{2}})
        if (builder.dtype(node.input(index)) != DType::f32 || builder.shape(node.input(index)).size() != 4)
            return false;
    if (mask != nullptr && builder.dtype(mask) != DType::f32) return false;
    const Shape& y_shape = builder.shape(node.output(0));
    const Array q = plain(builder, node.input(0));
    const Array k = plain(builder, node.input(1));
    const Array v = plain(builder, node.input(2));
    const Desc k_seen = node.attributes.get_int("k_transposed") != 0 ? k.desc : transposed(k.desc);
    Shape scores_shape = y_shape;
    scores_shape[3] = k_seen.get_dims()[3];
    const Desc scores_desc = dense_desc(DType::f32, scores_shape);

    dnnl::post_ops after;
    const float scale = node.attributes.get_float("scale", 1.0F);
    if (scale != 1.0F) after.append_eltwise(dnnl::algorithm::eltwise_linear, scale, 0);
    Desc mask_desc;
    if (mask != nullptr) {
        Shape dims = builder.shape(mask);
        dims.insert(dims.begin(), 4 - dims.size(), 1);
        mask_desc = dense_desc(DType::f32, dims);
        after.append_binary(dnnl::algorithm::binary_add, mask_desc);
    }
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::primitive_attr
        scored;  // not a copy of `attributes`: copies of oneDNN handles share what they stand for
    scored.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    scored.set_post_ops(after);
    const auto first = product(q.desc, k_seen, scores_desc, scored);
    // Heads are written side by side, as the projection that follows reads them.
    const Desc y_desc(y_shape, dnnl::memory::data_type::f32,
                      {y_shape[2] * y_shape[1] * y_shape[3], y_shape[3], y_shape[1] * y_shape[3], 1});
    auto second = product(scores_desc, v.desc, y_desc, attributes);
    if (!second || is_reference(second.impl_info_str()))
        second = product(scores_desc, v.desc, dense_desc(DType::f32, y_shape), attributes);
    const dnnl::softmax_forward::primitive_desc softmax(cpu(), dnnl::prop_kind::forward_inference,
                                                        dnnl::algorithm::softmax_accurate, scores_desc,
                                                        scores_desc, 3, attributes, true);
    if (!first || !second || !softmax) return false;

    const Array scores = builder.temporary(DType::f32, scores_shape, scores_desc);
    std::vector<Builder::Argument> arguments{
        {DNNL_ARG_SRC, fitted(builder, q, q.desc, first.src_desc())},
        {DNNL_ARG_WEIGHTS, fitted(builder, k, k_seen, first.weights_desc())},
        {DNNL_ARG_DST, scores}};
    if (mask != nullptr) {
        Array operand = builder.dense(mask);
        operand.desc = mask_desc;
        const int position = scale != 1.0F ? 1 : 0;
        arguments.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, operand);
    }
    builder.add_primitive(dnnl::matmul(first), first, std::move(arguments));
    builder.add_primitive(dnnl::softmax_forward(softmax), softmax,
                          {{DNNL_ARG_SRC, scores}, {DNNL_ARG_DST, scores}});
    const Array values = fitted(builder, v, v.desc, second.weights_desc());
    builder.add_primitive(dnnl::matmul(second), second,
                          {{DNNL_ARG_SRC, scores},
                           {DNNL_ARG_WEIGHTS, values},
                           {DNNL_ARG_DST, builder.result(node.output(0), second.dst_desc())}});
    return true;
}

KILTER_KERNEL("Attention", build, kKilterDomain);

}  // namespace
}  // namespace kilter::engine
