// Batch, instance, group and layer normalization, and local response normalization.
#include <algorithm>

#include "engine/builder.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

bool all_floats(const Builder& builder, const Node& node) {
    return std::ranges::all_of(node.inputs(), [&](const Value* value) {
        return value == nullptr || builder.dtype(value) == DType::f32;
    });
}

bool build_batch(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    const Shape& shape = builder.shape(x);
    if (!all_floats(builder, node) || shape.size() < 2 || shape.size() > 5 || node.output(1) != nullptr ||
        node.attributes.get_int("training_mode") != 0)
        return false;
    using Flags = dnnl::normalization_flags;
    Array source = builder.any(x);
    // The kernels want a spatial axis: [N, C] is [N, C, 1, 1].
    if (shape.size() == 2) {
        source = builder.dense(x);
        source.desc = dense_desc(DType::f32, {shape[0], shape[1], 1, 1});
    } else if (!is_packed(source.desc)) {
        source = builder.dense(x);  // a view with gaps
    }
    const auto describe = [&] {
        return dnnl::batch_normalization_forward::primitive_desc(
            cpu(), dnnl::prop_kind::forward_inference, source.desc, source.desc,
            node.attributes.get_float("epsilon", 1e-5F),
            Flags::use_global_stats | Flags::use_scale | Flags::use_shift, user_scratchpad(), true);
    };
    auto pd = describe();
    // Channels that lie together are fast in whole vectors only.
    if ((!pd || is_reference(pd.impl_info_str())) && !source.dense) {
        source = builder.dense(x);
        pd = describe();
    }
    if (!pd) return false;
    Array result = source;
    if (builder.dies_here(source))
        builder.alias(node.output(0), result);
    else
        result =
            builder.result(node.output(0), shape.size() == 2 ? dense_desc(DType::f32, shape) : source.desc);
    result.desc = source.desc;
    builder.add_primitive(dnnl::batch_normalization_forward(pd), pd,
                          {{DNNL_ARG_SRC, source},
                           {DNNL_ARG_SCALE, builder.dense(node.input(1))},
                           {DNNL_ARG_SHIFT, builder.dense(node.input(2))},
                           {DNNL_ARG_MEAN, builder.dense(node.input(3))},
                           {DNNL_ARG_VARIANCE, builder.dense(node.input(4))},
                           {DNNL_ARG_DST, result}});
    return true;
}

bool build_layer(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    const Shape& shape = builder.shape(x);
    if (!all_floats(builder, node) || shape.empty() || node.output(1) != nullptr || node.output(2) != nullptr)
        return false;
    const auto axis = static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis", -1), static_cast<int64_t>(shape.size())));
    int64_t rows = 1;
    int64_t width = 1;
    for (size_t i = 0; i < shape.size(); ++i) (i < axis ? rows : width) *= shape[i];
    // Scale and bias hold one number per element of a row; one per row is another thing.
    Shape wanted(axis, 1);
    wanted.insert(wanted.end(), shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end());
    for (const size_t index : {size_t{1}, size_t{2}}) {
        if (node.input(index) == nullptr) continue;
        Shape given = builder.shape(node.input(index));
        given.insert(given.begin(), shape.size() - given.size(), 1);
        if (given != wanted) return false;
    }
    using Flags = dnnl::normalization_flags;
    auto flags = Flags::none;
    if (node.input(1) != nullptr) flags = flags | Flags::use_scale;
    if (node.input(2) != nullptr) flags = flags | Flags::use_shift;
    Array source = builder.dense(x);
    source.desc = dense_desc(DType::f32, {rows, width});
    const dnnl::layer_normalization_forward::primitive_desc pd(
        cpu(), dnnl::prop_kind::forward_inference, source.desc, source.desc,
        node.attributes.get_float("epsilon", 1e-5F), flags, user_scratchpad(), true);
    if (!pd) return false;
    Array result = source;
    if (builder.dies_here(source)) {
        result.desc = dense_desc(DType::f32, shape);
        builder.alias(node.output(0), result);
    } else {
        result = builder.dense_result(node.output(0));
    }
    result.desc = source.desc;
    std::vector<Builder::Argument> arguments{{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, result}};
    const auto vector = [&](size_t index) {
        Array array = builder.dense(node.input(index));
        array.desc = dense_desc(DType::f32, {width});
        return array;
    };
    if (node.input(1) != nullptr) arguments.emplace_back(DNNL_ARG_SCALE, vector(1));
    if (node.input(2) != nullptr) arguments.emplace_back(DNNL_ARG_SHIFT, vector(2));
    builder.add_primitive(dnnl::layer_normalization_forward(pd), pd, std::move(arguments));
    return true;
}

bool build_lrn(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    if (!all_floats(builder, node) || builder.shape(x).size() != 4) return false;
    const int64_t size = node.attributes.get_int("size", 1);
    if (size % 2 == 0) return false;
    const Array source = builder.any(x);
    const dnnl::lrn_forward::primitive_desc pd(
        cpu(), dnnl::prop_kind::forward_inference, dnnl::algorithm::lrn_across_channels, source.desc,
        source.desc, size, node.attributes.get_float("alpha", 1e-4F),
        node.attributes.get_float("beta", 0.75F), node.attributes.get_float("bias", 1.0F), user_scratchpad(),
        true);
    if (!pd || is_reference(pd.impl_info_str())) return false;
    builder.add_primitive(
        dnnl::lrn_forward(pd), pd,
        {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, builder.result(node.output(0), source.desc)}});
    return true;
}

KILTER_KERNEL("BatchNormalization", build_batch);
KILTER_KERNEL("LayerNormalization", build_layer);
KILTER_KERNEL("LRN", build_lrn);

}  // namespace
}  // namespace kilter::engine
