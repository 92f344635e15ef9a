// Softmax and LogSoftmax along the innermost axis; native/softmax.cc has the others.
#include "engine/builder.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

bool build(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    const Shape& shape = builder.shape(x);
    if (builder.dtype(x) != DType::f32 || shape.empty() || shape.size() > 6) return false;
    const auto axis = static_cast<int>(
        normalize_axis(node.attributes.get_int("axis", -1), static_cast<int64_t>(shape.size())));
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const Array source = builder.dense(x);
    const auto kind =
        node.op() == "Softmax" ? dnnl::algorithm::softmax_accurate : dnnl::algorithm::softmax_log;
    const dnnl::softmax_forward::primitive_desc pd(cpu(), dnnl::prop_kind::forward_inference, kind,
                                                   source.desc, source.desc, axis, attributes, true);
    if (!pd || is_reference(pd.impl_info_str())) return false;
    Array result = source;
    if (builder.dies_here(source))
        builder.alias(node.output(0), result);
    else
        result = builder.dense_result(node.output(0));
    builder.add_primitive(dnnl::softmax_forward(pd), pd, {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, result}});
    return true;
}

KILTER_KERNEL("Softmax", build);
KILTER_KERNEL("LogSoftmax", build);

}  // namespace
}  // namespace kilter::engine
