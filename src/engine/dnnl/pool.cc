// Pooling in the layout the input has. Global pools and means over all spatial axes are pools over the whole plane.
#include <algorithm>

#include "engine/builder.h"
#include "engine/geometry.h"

namespace kilter::engine {
namespace {

using dnnl::algorithm;

bool add_pool(Builder& builder, const Node& node, algorithm kind, const ConvGeometry& geometry,
              const Shape& y_dims) {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto make = [&](const Array& source) {
        return dnnl::pooling_forward::primitive_desc(
            cpu(), dnnl::prop_kind::forward_inference, kind, source.desc, any_desc(builder.dtype(y), y_dims),
            geometry.strides, geometry.kernel, geometry.dilations, geometry.pads_begin, geometry.pads_end,
            attributes, true);
    };
    // Integer kernels exist for channels-last only.
    Array source = builder.dtype(x) == DType::f32
                       ? builder.any(x)
                       : builder.as(x, channels_last_desc(builder.dtype(x), builder.shape(x)));
    dnnl::pooling_forward::primitive_desc pd = make(source);
    if (!pd || is_reference(pd.impl_info_str())) {
        source = builder.dense(x);
        pd = make(source);
    }
    if (!pd) return false;
    Array result;
    if (y_dims == builder.shape(y)) {
        result = builder.result(y, pd.dst_desc());
    } else {
        // Without keepdims: the result [N, C, 1, 1] is stored dense and seen as [N, C].
        pd = {cpu(),
              dnnl::prop_kind::forward_inference,
              kind,
              source.desc,
              dense_desc(builder.dtype(y), y_dims),
              geometry.strides,
              geometry.kernel,
              geometry.dilations,
              geometry.pads_begin,
              geometry.pads_end,
              attributes,
              true};
        if (!pd) return false;
        result = builder.dense_result(y);
        result.desc = pd.dst_desc();
    }
    builder.add_primitive(dnnl::pooling_forward(pd), pd, {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, result}});
    return true;
}

// A maximum of integers is one of them; an average is not, and rounds in its own way (QAveragePool).
bool poolable(DType dtype, bool maximum) {
    return dtype == DType::f32 || (maximum && (dtype == DType::u8 || dtype == DType::i8));
}

bool build_pool(Builder& builder, const Node& node) {
    const Shape& x = builder.shape(node.input(0));
    if (!poolable(builder.dtype(node.input(0)), node.op() == "MaxPool") || x.size() < 3 || x.size() > 5 ||
        node.output(1) != nullptr)
        return false;
    const auto geometry = pool_geometry(node, x, builder.shape(node.output(0)));
    if (!geometry) return false;
    const bool maximum = node.op() == "MaxPool";
    const bool include = node.attributes.get_int("count_include_pad") != 0;
    // With ceil_mode ONNX leaves the overhang out of the average while oneDNN counts it as padding.
    if (!maximum && include && node.attributes.get_int("ceil_mode") != 0) return false;
    for (size_t i = 0; i < geometry->kernel.size(); ++i)
        if (geometry->pads_begin[i] >= geometry->kernel[i]) return false;
    const algorithm kind = maximum   ? algorithm::pooling_max
                           : include ? algorithm::pooling_avg_include_padding
                                     : algorithm::pooling_avg_exclude_padding;
    return add_pool(builder, node, kind, *geometry, builder.shape(node.output(0)));
}

bool build_whole_plane(Builder& builder, const Node& node, algorithm kind) {
    const Shape& x = builder.shape(node.input(0));
    if (!poolable(builder.dtype(node.input(0)), kind == algorithm::pooling_max) || x.size() < 3 ||
        x.size() > 5)
        return false;
    const size_t spatial = x.size() - 2;
    ConvGeometry geometry;
    geometry.kernel.assign(x.begin() + 2, x.end());
    geometry.strides.assign(spatial, 1);
    geometry.dilations.assign(spatial, 0);
    geometry.pads_begin.assign(spatial, 0);
    geometry.pads_end.assign(spatial, 0);
    Shape y(x.size(), 1);
    y[0] = x[0];
    y[1] = x[1];
    return add_pool(builder, node, kind, geometry, y);
}

bool build_global(Builder& builder, const Node& node) {
    return build_whole_plane(
        builder, node,
        node.op() == "GlobalMaxPool" ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding);
}

bool build_reduce(Builder& builder, const Node& node) {
    const Tensor* axes = builder.constant(node.input(1));
    if (axes == nullptr) return false;
    const auto rank = static_cast<int64_t>(builder.shape(node.input(0)).size());
    if (rank < 4) return false;
    std::vector<int64_t> list = axes->to_ints();
    for (int64_t& axis : list) axis = axis < 0 ? axis + rank : axis;
    std::ranges::sort(list);
    if (static_cast<int64_t>(list.size()) != rank - 2) return false;
    for (size_t i = 0; i < list.size(); ++i)
        if (list[i] != static_cast<int64_t>(i) + 2) return false;
    return build_whole_plane(
        builder, node,
        node.op() == "ReduceMax" ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding);
}

KILTER_KERNEL("MaxPool", build_pool);
KILTER_KERNEL("AveragePool", build_pool);
KILTER_KERNEL("GlobalAveragePool", build_global);
KILTER_KERNEL("GlobalMaxPool", build_global);
KILTER_KERNEL("ReduceMean", build_reduce);
KILTER_KERNEL("ReduceMax", build_reduce);

}  // namespace
}  // namespace kilter::engine
