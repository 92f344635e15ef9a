// Convolution and its transpose through oneDNN, with everything that follows as post-ops.
#include <algorithm>

#include "engine/builder.h"
#include "engine/dnnl/post_ops.h"
#include "engine/geometry.h"

namespace kilter::engine {
namespace {

using Desc = dnnl::memory::desc;

// ONNX weights are [out, in/groups, …] for Conv and [in, out/groups, …] for ConvTranspose; oneDNN wants groups in front
// and, for the transpose, outputs before inputs.
struct Weights {
    Desc from;  // the ONNX array under oneDNN's dimensions
    dnnl::memory::dims dims;
};

Weights weights_view(const Shape& shape, int64_t groups, bool transposed) {
    Shape dims(shape);
    Shape strides(shape.size(), 1);
    for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
    if (groups == 1) {
        if (transposed) {
            std::swap(dims[0], dims[1]);
            std::swap(strides[0], strides[1]);
        }
    } else {
        const int64_t group_stride = strides[0] * (shape[0] / groups);
        dims[0] = shape[0] / groups;
        if (transposed) {
            std::swap(dims[0], dims[1]);
            std::swap(strides[0], strides[1]);
        }
        dims.insert(dims.begin(), groups);
        strides.insert(strides.begin(), group_stride);
    }
    return {Desc(dims, dnnl::memory::data_type::f32, strides), dims};
}

template <class Forward>
bool build(Builder& builder, const Node& node, bool transposed) {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    const Tensor* weights = builder.constant(node.input(1));
    if (builder.dtype(x) != DType::f32 || builder.dtype(node.input(1)) != DType::f32) return false;
    const Value* bias = node.input(2);
    const std::optional<ConvGeometry> geometry =
        conv_geometry(node, builder.shape(x), builder.shape(node.input(1)), builder.shape(y), transposed);
    if (!geometry || builder.shape(x).size() > 5) return false;

    const Weights view = weights_view(builder.shape(node.input(1)), geometry->groups, transposed);
    FusedPostOps fused(builder, node, node.domain().empty() ? std::vector<PostOp>{} : post_ops(node), builder.shape(y));
    const Array source = builder.any(x);
    fused.accumulate(fused.can_accumulate(source));
    const Desc bias_desc = bias == nullptr ? Desc() : dense_desc(DType::f32, builder.shape(bias));
    const auto algorithm = transposed ? dnnl::algorithm::deconvolution_direct : dnnl::algorithm::convolution_direct;

    typename Forward::primitive_desc pd;
    size_t count = fused.size() + 1;
    do {
        --count;
        pd = typename Forward::primitive_desc(
            cpu(), dnnl::prop_kind::forward_inference, algorithm, any_desc(DType::f32, builder.shape(x)),
            Desc(view.dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any), bias_desc,
            any_desc(DType::f32, builder.shape(y)), geometry->strides, geometry->dilations, geometry->pads_begin,
            geometry->pads_end, fused.attributes(count), true);
    } while ((!pd || is_reference(pd.impl_info_str())) && count > 0);
    if (!pd) return false;
    if (count == 0) fused.accumulate(false);

    std::vector<Builder::Argument> arguments;
    arguments.emplace_back(DNNL_ARG_SRC, builder.as(x, pd.src_desc()));
    if (weights != nullptr) {
        arguments.emplace_back(DNNL_ARG_WEIGHTS, builder.packed(*weights, view.from, pd.weights_desc()));
    } else {
        Array raw = builder.dense(node.input(1));
        raw.desc = view.from;
        Array packed = raw;
        if (view.from != pd.weights_desc()) {
            packed = builder.temporary(DType::f32, raw.shape, pd.weights_desc());
            builder.add_reorder(raw, packed);
        }
        arguments.emplace_back(DNNL_ARG_WEIGHTS, packed);
    }
    if (bias != nullptr) arguments.emplace_back(DNNL_ARG_BIAS, builder.dense(bias));
    Array result;
    if (fused.accumulates()) {
        result = builder.as(fused.operand(0), pd.dst_desc());
        builder.alias(y, result);
    } else {
        result = builder.result(y, pd.dst_desc());
    }
    fused.bind(pd, count, arguments);
    arguments.emplace_back(DNNL_ARG_DST, result);
    builder.add_primitive(Forward(pd), pd, std::move(arguments));
    fused.apply_rest(count, result);
    return true;
}

bool build_conv(Builder& builder, const Node& node) {
    return build<dnnl::convolution_forward>(builder, node, false);
}

bool build_transposed(Builder& builder, const Node& node) {
    return build<dnnl::deconvolution_forward>(builder, node, true);
}

KILTER_KERNEL("Conv", build_conv);
KILTER_KERNEL("Conv", build_conv, kKilterDomain);
KILTER_KERNEL("ConvTranspose", build_transposed);
KILTER_KERNEL("ConvTranspose", build_transposed, kKilterDomain);

}  // namespace
}  // namespace kilter::engine
