// QConv and QConvTranspose: oneDNN's u8 (or s8) times s8 convolutions, channels-last, with everything that follows in the same kernel.
#include <string_view>

#include <fmt/format.h>

#include "engine/builder.h"
#include "engine/dnnl/integer_tail.h"
#include "engine/dnnl/weights_view.h"
#include "engine/geometry.h"
#include "engine/native/q_depthwise.h"
#include "engine/native/q_pointwise.h"

namespace kilter::engine {
namespace {

using Desc = dnnl::memory::desc;

template <class Descriptor>
bool usable(const Descriptor& pd) {
    return pd && !is_reference(pd.impl_info_str());
}

// Up to here oneDNN's direct kernels beat its first choice on VNNI, measured operator by operator on Zen 4: 0.60 ms instead of 0.72
// for 16 channels of 32x32, 0.51 instead of 0.58 for 32 of 16x16 (50 images). ResNet-50 showed no difference with any limit.
constexpr int64_t kFewChannels = 64;

// Moves on to the direct kernel. False when there is none: then the descriptor is of no use any more.
template <class Descriptor>
bool find_direct(Descriptor& pd) {
    while (pd.next_impl())
        if (std::string_view(pd.impl_info_str()) == "jit_int8:avx512_core_vnni") return true;
    return false;
}

template <class Forward>
bool build(Builder& builder, const Node& node, bool transposed) {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    const Value* bias = node.input(2);
    const Tensor* weights = builder.constant(node.input(1));
    const Shape& x_shape = builder.shape(x);
    const Shape& y_shape = builder.shape(y);
    if (weights == nullptr || weights->dtype() != DType::i8 || x_shape.size() > 5) return false;
    const auto geometry = conv_geometry(node, x_shape, weights->shape(), y_shape, transposed);
    if (!geometry) return false;
    if (!transposed &&
        (build_q_depthwise(builder, node, *geometry) || build_q_pointwise(builder, node, *geometry)))
        return true;
    const int64_t zero_point = node.attributes.get_int("x_zero_point");
    const IntegerTail tail(builder, node,
                           scale_products(node.attributes.get_float("x_scale", 1.0F),
                                          node.attributes.get_floats("w_scale", {1.0F})),
                           zero_point, y_shape);
    const Desc view = weights_view(DType::i8, weights->shape(), geometry->groups, transposed);
    const Desc weights_any(view.get_dims(), dnnl::memory::data_type::s8, dnnl::memory::format_tag::any);
    const Desc bias_desc = bias == nullptr ? Desc() : dense_desc(DType::f32, builder.shape(bias));
    const Desc source_desc = channels_last_desc(builder.dtype(x), x_shape);

    const auto make = [&](bool whole) {
        return typename Forward::primitive_desc(
            cpu(), dnnl::prop_kind::forward_inference,
            transposed ? dnnl::algorithm::deconvolution_direct : dnnl::algorithm::convolution_direct,
            source_desc, weights_any, bias_desc, channels_last_desc(tail.dtype(whole), y_shape),
            geometry->strides, geometry->dilations, geometry->pads_begin, geometry->pads_end,
            tail.attributes(whole, geometry->groups > 1 ? 3 : 1), true);
    };
    bool fused = true;
    typename Forward::primitive_desc pd = make(fused);
    if (!usable(pd)) {
        fused = false;
        pd = make(fused);
    }
    if (!pd) return false;
    if (y_shape[1] <= kFewChannels && std::string_view(pd.impl_info_str()) == "brgconv:avx512_core_vnni" &&
        !find_direct(pd))
        pd = make(fused);

    std::vector<Builder::Argument> arguments;
    arguments.emplace_back(DNNL_ARG_SRC, builder.as(x, source_desc));
    const std::string variant = fmt::format("{}{}", builder.dtype(x) == DType::i8 ? "s8" : "u8",
                                            zero_point != 0 ? "+zero_point" : "");
    arguments.emplace_back(DNNL_ARG_WEIGHTS, builder.packed(*weights, view, pd.weights_desc(), variant));
    if (bias != nullptr) arguments.emplace_back(DNNL_ARG_BIAS, builder.dense(bias));
    tail.bind(pd, fused, arguments);
    const Array result = tail.destination(pd.dst_desc(), fused, {x});
    arguments.emplace_back(DNNL_ARG_DST, result);
    builder.add_primitive(Forward(pd), pd, std::move(arguments));
    if (!fused) tail.finish(result);
    return true;
}

bool build_conv(Builder& builder, const Node& node) {
    return build<dnnl::convolution_forward>(builder, node, false);
}
bool build_transposed(Builder& builder, const Node& node) {
    return build<dnnl::deconvolution_forward>(builder, node, true);
}

KILTER_KERNEL("QConv", build_conv, kKilterDomain);
KILTER_KERNEL("QConvTranspose", build_transposed, kKilterDomain);

}  // namespace
}  // namespace kilter::engine
