#include "ops/integer_result.h"

#include <algorithm>
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "graph/onnx_dtype.h"
#include "ops/broadcast.h"
#include "ops/numeric.h"

namespace kilter {

ResultType result_type(const Attributes& attributes) {
    ResultType type;
    if (!attributes.has("y_dtype")) return type;
    type.dtype = dtype_from_onnx(attributes.get_int("y_dtype"));
    require(type.dtype == DType::u8 || type.dtype == DType::i8,
            "attribute 'y_dtype' must be u8 or i8, found {}", name(type.dtype));
    const float scale = attributes.get_float("y_scale", 1.0F);
    require(scale > 0, "attribute 'y_scale' must be positive, found {}", scale);
    type.inverse_scale = 1.0F / scale;
    type.zero_point = static_cast<float>(attributes.get_int("y_zero_point"));
    return type;
}

int32_t requantize(float t, const ResultType& type) {
    const float scaled = t * type.inverse_scale;
    const float shifted = scaled + type.zero_point;
    const float low = type.dtype == DType::u8 ? 0.0F : -128.0F;
    const float high = type.dtype == DType::u8 ? 255.0F : 127.0F;
    return static_cast<int32_t>(std::nearbyint(shifted > low ? std::min(shifted, high) : low));
}

float apply_post_op(const PostOp& op, float t, float operand) {
    if (op.name == "relu") return t > 0 ? t : 0;
    if (op.name == "leaky_relu") return t > 0 ? t : t * op.alpha;
    if (op.name == "clip") return std::min(std::max(t, op.alpha), op.beta);
    if (op.name == "linear") return std::fma(t, op.alpha, op.beta);
    if (op.name == "hard_swish" || op.name == "hard_sigmoid") {
        const bool swish = op.name == "hard_swish";
        const float product = t * (swish ? 1.0F / 6 : op.alpha);
        const float gate = std::min(std::max(product + (swish ? 0.5F : op.beta), 0.0F), 1.0F);
        return swish ? t * gate : gate;
    }
    if (op.name == "add") return t + operand;
    if (op.name == "sub") return t - operand;
    if (op.name == "mul") return t * operand;
    if (op.name == "div") return t / operand;
    if (op.name == "max") return std::max(t, operand);
    if (op.name == "min") return std::min(t, operand);
    return static_cast<float>(apply_unary(op, t));
}

FloatTail float_tail(const Node& node) {
    FloatTail tail;
    tail.ops = post_ops(node);
    const auto binary =
        static_cast<size_t>(std::ranges::count_if(tail.ops, [](const PostOp& op) { return op.is_binary(); }));
    tail.operand_scales = node.attributes.get_floats("operand_scales", std::vector<float>(binary, 0.0F));
    tail.operand_zero_points =
        node.attributes.get_ints("operand_zero_points", std::vector<int64_t>(binary, 0));
    require(tail.operand_scales.size() == binary && tail.operand_zero_points.size() == binary,
            "{} operands have {} scales and {} zero points", binary, tail.operand_scales.size(),
            tail.operand_zero_points.size());
    size_t next = 0;
    for (const PostOp& op : tail.ops) {
        if (!op.is_binary()) continue;
        require(tail.operand_scales[next] == 0 || op.name == "add",
                "only an addition takes a quantized operand, found '{}'", op.name);
        ++next;
    }
    return tail;
}

namespace {

// The residual is multiplied and added in one rounding: fma(q - zero_point, scale, t).
void apply_operand(std::span<float> values, const Shape& shape, const PostOp& op, const Tensor& operand,
                   float scale, int64_t zero_point) {
    BroadcastIndex index(operand.shape(), shape);
    for (float& value : values) {
        const double number = load_double(operand.dtype(), operand.raw(), index.offset());
        value = scale == 0
                    ? apply_post_op(op, value, static_cast<float>(number))
                    : std::fma(static_cast<float>(number - static_cast<double>(zero_point)), scale, value);
        index.next();
    }
}

}  // namespace

void apply_post_ops(const FloatTail& tail, std::span<float> values, const Shape& shape,
                    const std::vector<Tensor>& inputs) {
    size_t next = 0;
    for (const PostOp& op : tail.ops) {
        if (!op.is_binary()) {
            for (float& value : values) value = apply_post_op(op, value, 0.0F);
            continue;
        }
        apply_operand(values, shape, op, inputs.at(static_cast<size_t>(op.operand)),
                      tail.operand_scales[next], tail.operand_zero_points[next]);
        ++next;
    }
}

void requantize(std::span<const float> values, const ResultType& type, void* result) {
    for (size_t i = 0; i < values.size(); ++i)
        store_int(type.dtype, result, static_cast<int64_t>(i), requantize(values[i], type));
}

void store_result(KernelContext& context, const Tensor& sums, size_t channel_axis, const FloatTail& tail) {
    const Shape& shape = sums.shape();
    const ResultType type = result_type(context.attributes());
    Tensor floats(DType::f32, shape);
    const std::span<float> values = floats.as_mutable<float>();
    const std::span<const double> from = sums.as<double>();
    const int64_t inner = extent(shape, channel_axis + 1, shape.size());
    const int64_t channels = shape[channel_axis];
    const float* bias = tail.bias.empty() ? nullptr : tail.bias.as<float>().data();
    require((tail.scales.size() == 1 || static_cast<int64_t>(tail.scales.size()) == channels) &&
                (bias == nullptr || tail.bias.size() == 1 || tail.bias.size() == channels),
            "{} scales and {} biases for {} channels", tail.scales.size(), tail.bias.size(), channels);
    for (size_t i = 0; i < values.size(); ++i) {
        const size_t channel = static_cast<size_t>(static_cast<int64_t>(i) / inner % channels);
        const float product =
            static_cast<float>(from[i]) * tail.scales[tail.scales.size() == 1 ? 0 : channel];
        values[i] = bias == nullptr ? product : product + bias[tail.bias.size() == 1 ? 0 : channel];
    }
    apply_post_ops(tail, values, shape, all_inputs(context));
    if (type.dtype == DType::f32) return context.set_output(0, std::move(floats));
    Tensor& y = context.output(0, type.dtype, shape);
    requantize(values, type, y.raw_mutable());
}

Tensor centered_reals(const Tensor& tensor, int64_t zero_point, std::string_view what) {
    require(tensor.dtype() == DType::u8 || tensor.dtype() == DType::i8, "{} must be u8 or i8, found {}", what,
            name(tensor.dtype()));
    Tensor reals(DType::f64, tensor.shape());
    const std::span<double> values = reals.as_mutable<double>();
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = load_double(tensor.dtype(), tensor.raw(), static_cast<int64_t>(i)) -
                    static_cast<double>(zero_point);
    return reals;
}

std::vector<float> scale_products(float x_scale, std::vector<float> scales) {
    for (float& scale : scales) scale = x_scale * scale;
    return scales;
}

std::vector<AttributeSpec> with_result_attributes(std::vector<AttributeSpec> attributes) {
    const std::vector<AttributeSpec> common{
        {"y_scale", AttributeKind::real},         {"y_zero_point", AttributeKind::integer},
        {"y_dtype", AttributeKind::integer},      {"post_ops", AttributeKind::texts},
        {"post_alphas", AttributeKind::reals},    {"post_betas", AttributeKind::reals},
        {"operand_scales", AttributeKind::reals}, {"operand_zero_points", AttributeKind::integers}};
    attributes.insert(attributes.end(), common.begin(), common.end());
    return attributes;
}

}  // namespace kilter
