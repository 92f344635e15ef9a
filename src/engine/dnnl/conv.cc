// Convolution and its transpose, with everything that follows as post-ops: our Winograd kernel for 3x3, oneDNN elsewhere.
#include <algorithm>
#include <limits>

#include "engine/builder.h"
#include "engine/dnnl/post_ops.h"
#include "engine/dnnl/weights_view.h"
#include "engine/geometry.h"
#include "engine/native/simd.h"
#include "engine/native/winograd.h"

namespace kilter::engine {
namespace {

using Desc = dnnl::memory::desc;

struct Convolution {
    const Node& node;
    const Value* x;
    const Value* y;
    const Value* weights;
    const Value* bias;  // may be null
    ConvGeometry geometry;
    std::vector<PostOp> ops;
};

bool build_winograd(Builder& builder, const Convolution& conv) {
    const Tensor* weights = builder.constant(conv.weights);
    const ConvGeometry& geometry = conv.geometry;
    const Shape& x = builder.shape(conv.x);
    const auto all = [](const Shape& values, int64_t wanted) {
        return std::ranges::all_of(values, [&](int64_t value) { return value == wanted; });
    };
    if (weights == nullptr || x.size() != 4 || geometry.groups != 1 || !all(geometry.kernel, 3) ||
        !all(geometry.strides, 1) || !all(geometry.dilations, 0) || geometry.pads_end[0] < 0 ||
        geometry.pads_end[1] < 0 || element_count(x) > std::numeric_limits<int>::max() / 8)
        return false;
    const auto number = [](int64_t value) { return static_cast<int>(value); };
    const WinogradShape shape{number(x[0]),
                              number(x[2]),
                              number(x[3]),
                              number(x[1]),
                              number(weights->dim(0)),
                              number(geometry.pads_begin[0]),
                              number(geometry.pads_begin[1]),
                              number(geometry.pads_end[0]),
                              number(geometry.pads_end[1])};
    const int tile = Winograd::best_tile(shape);
    if (tile == 0) return false;

    // What the kernel fuses: a residual of full size, then a clamp.
    FusedPostOps fused(builder, conv.node, conv.ops, builder.shape(conv.y));
    size_t count = 0;
    const Value* residual = nullptr;
    if (count < conv.ops.size() && conv.ops[count].name == "add" &&
        builder.shape(fused.operand(count)) == builder.shape(conv.y) &&
        builder.dtype(fused.operand(count)) == DType::f32)
        residual = fused.operand(count++);
    float low = -std::numeric_limits<float>::infinity();
    float high = std::numeric_limits<float>::infinity();
    if (count < conv.ops.size() && conv.ops[count].name == "relu") {
        low = 0;
        ++count;
    } else if (count < conv.ops.size() && conv.ops[count].name == "clip") {
        low = conv.ops[count].alpha;
        high = conv.ops[count].beta;
        ++count;
    }

    const Winograd kernel(shape, tile, builder.options().threads);
    const Array packed = builder.derived(
        *weights, "winograd" + std::to_string(tile), DType::f32,
        {static_cast<int64_t>(kernel.weight_floats())},
        [&](void* target) { kernel.pack(weights->as<float>().data(), static_cast<float*>(target)); });
    const Array source = builder.as(conv.x, channels_last_desc(DType::f32, x));
    const Desc result_desc = channels_last_desc(DType::f32, builder.shape(conv.y));
    const Array scratch = builder.scratch(kernel.scratch_bytes());
    std::vector<Array> reads{source, packed};
    Array bias;
    if (conv.bias != nullptr) reads.push_back(bias = builder.dense(conv.bias));
    Array addend;
    Array result;
    if (residual != nullptr) reads.push_back(addend = builder.as(residual, result_desc));
    if (residual != nullptr && addend.buffer != source.buffer && builder.dies_here(addend)) {
        result = addend;
        builder.alias(conv.y, result);
    } else {
        result = builder.result(conv.y, result_desc);
    }
    builder.add_native(tile == 4 ? "winograd_4x4:avx512" : "winograd_2x2:avx512", reads, {result, scratch},
                       [=](Execution& execution) {
                           const auto floats = [&](const Array& array) {
                               return array.valid() ? reinterpret_cast<float*>(execution.address(array))
                                                    : nullptr;
                           };
                           kernel.execute(floats(source), floats(packed), floats(bias), floats(result),
                                          floats(addend), low, high, floats(scratch));
                       });
    fused.apply_rest(count, result);
    return true;
}

// oneDNN lists its implementations in an order made on other machines; these two choices were measured (docs/engine.md):
// the plain depthwise kernel beats the brgemm one, and eight channels beyond a multiple of sixteen waste half of a vector.
template <class Descriptor>
void choose_implementation(Descriptor& pd, const Convolution& conv, int64_t out_channels) {
    const bool depthwise = conv.geometry.groups > 1 && conv.geometry.groups == out_channels;
    const bool half_vector =
        conv.geometry.groups == 1 && out_channels % 16 == 8 && out_channels < 64 &&
        std::ranges::all_of(conv.geometry.kernel, [](int64_t size) { return size == 1; });
    const std::string_view wanted = depthwise ? "jit_dw:avx512_core" : half_vector ? "brgconv_1x1:avx2" : "";
    if (wanted.empty()) return;
    Descriptor other = pd;
    for (int tries = 0; tries < 8; ++tries) {
        if (std::string_view(other.impl_info_str()) == wanted) {
            pd = other;
            return;
        }
        if (!other.next_impl()) return;
    }
}

bool acceptable(const std::string& implementation) {
    return !is_reference(implementation) && implementation.find("gemm:") == std::string::npos;
}

template <class Forward>
bool build_primitive(Builder& builder, const Convolution& conv, bool transposed) {
    const ConvGeometry& geometry = conv.geometry;
    const Shape& x_shape = builder.shape(conv.x);
    const Shape& y_shape = builder.shape(conv.y);
    const DType dtype = builder.dtype(conv.x);
    const Desc view = weights_view(dtype, builder.shape(conv.weights), geometry.groups, transposed);
    const Desc weights_any(view.get_dims(), dnnl_type(dtype), dnnl::memory::format_tag::any);
    FusedPostOps fused(builder, conv.node, conv.ops, y_shape);
    fused.accumulate(fused.can_accumulate({conv.x, conv.weights}));
    const Desc bias_desc = conv.bias == nullptr ? Desc() : dense_desc(dtype, builder.shape(conv.bias));
    const auto algorithm =
        transposed ? dnnl::algorithm::deconvolution_direct : dnnl::algorithm::convolution_direct;

    const auto make = [&](const Desc& source, const Desc& result, size_t count) {
        typename Forward::primitive_desc pd(cpu(), dnnl::prop_kind::forward_inference, algorithm, source,
                                            weights_any, bias_desc, result, geometry.strides,
                                            geometry.dilations, geometry.pads_begin, geometry.pads_end,
                                            fused.attributes(count), true);
        if (pd && !transposed) choose_implementation(pd, conv, y_shape[1]);
        return pd;
    };
    // Channels-last keeps one layout through the whole network where AVX-512 kernels take it; else oneDNN chooses.
    typename Forward::primitive_desc pd;
    size_t count = fused.size() + 1;
    do {
        --count;
        if (isa() == Isa::avx512)
            pd = make(channels_last_desc(dtype, x_shape), channels_last_desc(dtype, y_shape), count);
        if (!pd || !acceptable(pd.impl_info_str()))
            pd = make(any_desc(dtype, x_shape), any_desc(dtype, y_shape), count);
    } while ((!pd || !acceptable(pd.impl_info_str())) && count > 0);
    if (!pd) return false;
    if (count == 0) fused.accumulate(false);

    std::vector<Builder::Argument> arguments;
    arguments.emplace_back(DNNL_ARG_SRC, builder.as(conv.x, pd.src_desc()));
    if (const Tensor* weights = builder.constant(conv.weights)) {
        arguments.emplace_back(DNNL_ARG_WEIGHTS, builder.packed(*weights, view, pd.weights_desc()));
    } else {
        Array weights_now = builder.dense(conv.weights);
        weights_now.desc = view;
        if (view != pd.weights_desc()) {
            const Array packed = builder.temporary(dtype, weights_now.shape, pd.weights_desc());
            builder.add_reorder(weights_now, packed);
            weights_now = packed;
        }
        arguments.emplace_back(DNNL_ARG_WEIGHTS, weights_now);
    }
    if (conv.bias != nullptr) arguments.emplace_back(DNNL_ARG_BIAS, builder.dense(conv.bias));
    fused.bind(pd, count, arguments);
    Array result;
    if (fused.accumulates()) {
        result = builder.as(fused.operand(0), pd.dst_desc());
        builder.alias(conv.y, result);
    } else {
        result = builder.result(conv.y, pd.dst_desc());
    }
    arguments.emplace_back(DNNL_ARG_DST, result);
    builder.add_primitive(Forward(pd), pd, std::move(arguments));
    fused.apply_rest(count, result);
    return true;
}

bool build(Builder& builder, const Node& node, bool transposed) {
    const Value* x = node.input(0);
    const Value* weights = node.input(1);
    const Value* y = node.output(0);
    const DType dtype = builder.dtype(x);
    if (dtype != DType::f32 && (dtype != DType::bf16 || !has_bf16())) return false;
    if (builder.dtype(weights) != dtype || builder.shape(x).size() > 5) return false;
    const auto geometry =
        conv_geometry(node, builder.shape(x), builder.shape(weights), builder.shape(y), transposed);
    if (!geometry) return false;
    const Convolution conv{node,
                           x,
                           y,
                           weights,
                           node.input(2),
                           *geometry,
                           node.domain().empty() ? std::vector<PostOp>{} : post_ops(node)};
    if (transposed) return build_primitive<dnnl::deconvolution_forward>(builder, conv, true);
    return (dtype == DType::f32 && build_winograd(builder, conv)) ||
           build_primitive<dnnl::convolution_forward>(builder, conv, false);
}

bool build_conv(Builder& builder, const Node& node) { return build(builder, node, false); }
bool build_transposed(Builder& builder, const Node& node) { return build(builder, node, true); }

KILTER_KERNEL("Conv", build_conv);
KILTER_KERNEL("Conv", build_conv, kKilterDomain);
KILTER_KERNEL("ConvTranspose", build_transposed);
KILTER_KERNEL("ConvTranspose", build_transposed, kKilterDomain);

}  // namespace
}  // namespace kilter::engine
