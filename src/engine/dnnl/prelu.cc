// PRelu: in the layout the input has through oneDNN, with broadcasting on row-major arrays elsewhere.
#include "engine/builder.h"
#include "engine/native/elementwise.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

bool build_blocked(Builder& builder, const Node& node) {
    const Array x = builder.any(node.input(0));
    if (builder.dtype(node.input(0)) != DType::f32 || x.dense || !is_packed(x.desc)) return false;
    Shape dims = builder.shape(node.input(1));
    dims.insert(dims.begin(), builder.shape(node.input(0)).size() - dims.size(), 1);
    const dnnl::memory::desc slopes = dense_desc(DType::f32, dims);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::prelu_forward::primitive_desc pd(cpu(), dnnl::prop_kind::forward_inference, x.desc,
                                                 any_desc(DType::f32, dims), x.desc, attributes, true);
    if (!pd || is_reference(pd.impl_info_str())) return false;
    const Tensor* constant = builder.constant(node.input(1));
    Array weights;
    if (constant != nullptr) {
        weights = builder.packed(*constant, slopes, pd.weights_desc());
    } else {
        Array dense = builder.dense(node.input(1));
        dense.desc = slopes;
        weights = builder.temporary(DType::f32, dims, pd.weights_desc());
        builder.add_reorder(dense, weights);
    }
    Array y = x;
    if (builder.dies_here(x))
        builder.alias(node.output(0), y);
    else
        y = builder.result(node.output(0), x.desc);
    builder.add_primitive(dnnl::prelu_forward(pd), pd,
                          {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, y}});
    return true;
}

bool build(Builder& builder, const Node& node) {
    if (!has_native_binary("prelu", builder.dtype(node.output(0)))) return false;
    if (broadcast(builder.shape(node.input(0)), builder.shape(node.input(1))) != builder.shape(node.input(0)))
        return false;
    if (build_blocked(builder, node)) return true;
    const Array x = builder.dense(node.input(0));
    const Array slope = builder.dense(node.input(1));
    add_native_binary(builder, "prelu", x, slope, elementwise_result(builder, node.output(0), {x, slope}));
    return true;
}

KILTER_KERNEL("PRelu", build);

}  // namespace
}  // namespace kilter::engine
