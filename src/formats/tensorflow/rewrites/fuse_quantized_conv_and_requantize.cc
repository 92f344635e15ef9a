// A convolution on integers and the Requantize behind it are one oneDNN primitive.
#include <algorithm>

#include "base/fail.h"
#include "formats/tensorflow/rewrites/affine.h"

namespace kilter::tensorflow {
namespace {

// A convolution as TensorFlow's newer operators spell it: tensors first, then ranges.
struct IntegerConvolution {
    std::string op;
    std::vector<std::string> fused_ops;
    std::vector<TfInput> tensors;  // input, filter [, bias] [, summand]
    std::vector<TfInput> ranges;   // of input and filter [, of the summand]
    std::vector<TfType> types;     // of the tensors
};

// What the older names have fused; nothing for other operators.
std::optional<std::vector<std::string>> fused_by_name(std::string_view op) {
    for (const std::string_view prefix : {"QuantizedConv2D", "QuantizedDepthwiseConv2D"}) {
        if (!op.starts_with(prefix)) continue;
        const std::string_view rest = op.substr(prefix.size());
        if (rest.empty()) return std::vector<std::string>{};
        if (rest == "WithBias") return std::vector<std::string>{"BiasAdd"};
        if (rest == "WithBiasAndRelu") return std::vector<std::string>{"BiasAdd", "Relu"};
    }
    return std::nullopt;
}

std::optional<IntegerConvolution> integer_convolution(const TfNode& node) {
    if (node.attributes.get_type("out_type", kQint32) != kQint32) return std::nullopt;
    IntegerConvolution conv;
    const bool newer = node.op == "_FusedQuantizedConv2D" || node.op == "_FusedQuantizedDepthwiseConv2D";
    if (newer) {
        conv.op = node.op;
        conv.fused_ops = node.attributes.get_strings("fused_ops");
        conv.types = node.attributes.get_types("Tdevice_inputs");
        if (std::ranges::find(conv.fused_ops, "Requantize") != conv.fused_ops.end()) return std::nullopt;
    } else {
        const auto fused = fused_by_name(node.op);
        if (!fused) return std::nullopt;
        conv.op = node.op.starts_with("QuantizedDepthwise") ? "_FusedQuantizedDepthwiseConv2D"
                                                            : "_FusedQuantizedConv2D";
        conv.fused_ops = *fused;
        conv.types = {node.attributes.get_type("Tinput"), node.attributes.get_type("Tfilter")};
        if (!fused->empty()) conv.types.push_back(node.attributes.get_type("Tbias", kFloat));
    }
    const size_t tensors = conv.types.size();
    const size_t ranges = std::ranges::find(conv.fused_ops, "Sum") == conv.fused_ops.end() ? 4 : 6;
    if (node.data_inputs() != tensors + ranges) return std::nullopt;
    conv.tensors.assign(node.inputs.begin(), node.inputs.begin() + static_cast<int64_t>(tensors));
    conv.ranges.assign(node.inputs.begin() + static_cast<int64_t>(tensors),
                       node.inputs.begin() + static_cast<int64_t>(tensors + ranges));
    return conv;
}

TfList list_of(std::vector<TfType> types) {
    TfList list;
    list.types = std::move(types);
    return list;
}

// A constant vector with `summand` added to every element, as a new constant.
TfInput shifted(TfGraph& graph, const TfInput& vector, double summand) {
    const Tensor old = *constant_of(graph, vector);
    Tensor moved(DType::f32, old.shape());
    for (int64_t i = 0; i < old.size(); ++i)
        moved.as_mutable<float>()[i] = static_cast<float>(old.as<float>()[i] + summand);
    const std::string name = graph.fresh_name(vector.node + "_shifted");
    graph.add_constant(name, std::move(moved));
    return TfInput::of(name);
}

bool is_float_constant(const TfGraph& graph, const TfInput& input) {
    const std::optional<Tensor> value = constant_of(graph, input);
    return value && value->dtype() == DType::f32;
}

// TensorFlow 2.21 adds signed summands as if they were unsigned. The operator that makes the summand can store it as unsigned
// bytes with an offset; the bias of the one that adds takes the offset out again. False when this is not possible.
bool make_summand_unsigned(TfGraph& graph, const Readers& readers, IntegerConvolution& conv) {
    TfNode* maker = graph.producer(conv.tensors[3]);
    const std::vector<std::string> ops =
        maker == nullptr ? std::vector<std::string>() : maker->attributes.get_strings("fused_ops");
    if (maker == nullptr || ops != std::vector<std::string>{"BiasAdd", "Requantize"} ||
        maker->data_inputs() != 9 || maker->attributes.get_type("out_type") != kQint8 ||
        !is_float_constant(graph, maker->inputs[2]) || !is_float_constant(graph, conv.tensors[2]))
        return false;
    for (const TfGraph::Use& use : readers.of(*maker))
        if (use.node != readers.of(*maker)[0].node) return false;
    const std::optional<Tensor> high = constant_of(graph, maker->inputs[8]);
    if (!high || high->size() != 1) return false;
    const double scale = 2.0 * high->to_doubles()[0] / 255;
    const double offset = 128 * scale;
    maker->inputs[2] = shifted(graph, maker->inputs[2], offset);
    conv.tensors[2] = shifted(graph, conv.tensors[2], -offset);
    const std::string stem = graph.fresh_name(maker->name + "/unsigned");
    graph.add_constant(stem + "_min", Tensor::scalar<float>(0.0F));
    graph.add_constant(stem + "_max", Tensor::scalar<float>(static_cast<float>(scale * 255)));
    maker->inputs[7] = conv.ranges[4] = TfInput::of(stem + "_min");
    maker->inputs[8] = conv.ranges[5] = TfInput::of(stem + "_max");
    maker->attributes.set("out_type", kQuint8);
    maker->attributes.set("Tsummand", kQuint8);
    maker->attributes.set("Tdevice_outputs", list_of({kQuint8}));
    conv.types[3] = kQuint8;
    return true;
}

bool fuse_requantize(TfGraph& graph, const Readers& readers, const Wanted& wanted, TfNode& requantize) {
    if ((requantize.op != "Requantize" && requantize.op != "RequantizePerChannel") ||
        requantize.data_inputs() != 5)
        return false;
    TfNode* source = graph.producer(requantize.inputs[0]);
    if (source == nullptr || wanted.contains(source->name)) return false;
    std::optional<IntegerConvolution> conv = integer_convolution(*source);
    if (!conv) return false;
    for (const TfGraph::Use& use : readers.of(*source))
        if (use.node != &requantize) return false;
    if (!constant_of(graph, requantize.inputs[3]) || !constant_of(graph, requantize.inputs[4])) return false;
    const TfType type = requantize.attributes.get_type("out_type");
    TfType summand = type;
    if (conv->ranges.size() == 6) {
        if (type != kQuint8) return false;
        if (conv->types[3] == kQint8 && !make_summand_unsigned(graph, readers, *conv)) return false;
        summand = conv->types[3];
    }
    conv->fused_ops.emplace_back("Requantize");
    conv->ranges.push_back(requantize.inputs[3]);
    conv->ranges.push_back(requantize.inputs[4]);
    TfAttributes attributes;
    attributes.set("Tinput", conv->types[0]);
    attributes.set("Tfilter", conv->types[1]);
    attributes.set("Tbias", conv->types.size() > 2 ? conv->types[2] : kFloat);
    attributes.set("Tsummand", summand);
    attributes.set("out_type", type);
    attributes.set("Tdevice_inputs", list_of(conv->types));
    attributes.set("Thost_inputs", list_of(std::vector<TfType>(conv->ranges.size(), kFloat)));
    attributes.set("Tdevice_outputs", list_of({type}));
    attributes.set("Thost_outputs", list_of({kFloat, kFloat}));
    for (const char* copied : {"data_format", "strides", "padding", "explicit_paddings", "dilations",
                               "is_filter_const", "is_bias_const"})
        if (const TfValue* value = source->attributes.find(copied)) attributes.set(copied, *value);
    if (const std::vector<int64_t> paddings = source->attributes.get_ints("padding_list");
        !paddings.empty()) {
        TfList list;
        list.ints = paddings;
        attributes.set("padding", "EXPLICIT");
        attributes.set("explicit_paddings", std::move(list));
    }
    TfList ops;
    ops.strings = conv->fused_ops;
    attributes.set("fused_ops", std::move(ops));
    requantize.op = conv->op;
    requantize.attributes = std::move(attributes);
    requantize.inputs = conv->tensors;
    requantize.inputs.insert(requantize.inputs.end(), conv->ranges.begin(), conv->ranges.end());
    return true;
}

}  // namespace

int fuse_quantized_conv_and_requantize(TfGraph& graph, const Wanted& wanted) {
    return rewrite(graph, wanted, [&](const Readers& readers, TfNode& node) {
        return fuse_requantize(graph, readers, wanted, node);
    });
}

}  // namespace kilter::tensorflow
