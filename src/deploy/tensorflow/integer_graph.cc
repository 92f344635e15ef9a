#include "deploy/tensorflow/integer_graph.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "deploy/tensorflow/integer_values.h"
#include "deploy/tensorflow/quantized_weights.h"
#include "formats/tensorflow/rewrites/affine.h"

namespace kilter::tensorflow {
namespace {

TfType type_of(const Stored& stored) { return stored.is_signed ? kQint8 : kQuint8; }

TfList types(std::vector<TfType> list) {
    TfList result;
    result.types = std::move(list);
    return result;
}

TfList strings(std::vector<std::string> list) {
    TfList result;
    result.strings = std::move(list);
    return result;
}

class Emission {
  public:
    Emission(TfGraph& graph, const IslandOptions& options, const IntegerValues& values)
        : graph_(graph), options_(options), values_(values), uses_(graph.uses()) {
        for (const std::string& output : options.outputs) wanted_.insert(TfInput(output).node);
        for (const Fused& fused : values.islands().fused) {
            products_.insert(fused.product);
            if (fused.sum != nullptr) sums_.emplace(fused.sum, fused.summand.text());
        }
    }

    IntegerReport run() {
        const Islands& islands = values_.islands();
        // Who makes bytes of a tensor is known before anybody reads them: islands have no order among themselves.
        for (const Fused& fused : islands.fused)
            if (needs_bytes(fused)) bytes_[fused.last().name] = fresh_name(fused.product->name + "/int8");
        for (const TfNode* node : islands.passive) bytes_[node->name] = fresh_name(node->name + "/int8");
        for (const Fused& fused : islands.fused) emit(fused);
        for (TfNode* node : islands.passive) emit_passive(*node);
        replace_old_nodes();
        report_rest();
        return std::move(report_);
    }

  private:
    bool needs_bytes(const Fused& fused) const { return values_.has_bytes(fused.last().name); }

    // Does somebody read the tensor as floats?
    bool has_float_reader(const TfNode& node) const {
        if (wanted_.contains(node.name)) return true;
        const auto found = uses_.find(node.name);
        if (found == uses_.end()) return false;
        return std::ranges::any_of(found->second, [&](const TfGraph::Use& use) { return !reads_bytes(use); });
    }

    bool reads_bytes(const TfGraph::Use& use) const {
        const TfInput& input = use.node->inputs[use.index];
        if (input.control) return false;
        if (products_.contains(use.node)) return use.index == 0;
        const auto sum = sums_.find(use.node);
        if (sum != sums_.end()) return sum->second == input.text();
        if (!values_.islands().passive.contains(use.node)) return false;
        return use.index < passive_tensors(*use.node);
    }

    // A name that neither a node of the graph has nor one that waits to be added.
    std::string fresh_name(const std::string& stem) {
        std::string name = graph_.fresh_name(stem);
        for (int number = 2; !given_.insert(name).second; ++number)
            name = graph_.fresh_name(fmt::format("{}_{}", stem, number));
        return name;
    }

    // "node", or "node_1" for its second output.
    static std::string stem_of(const std::string& tensor) {
        const TfInput input(tensor);
        return input.port == 0 ? input.node : fmt::format("{}_{}", input.node, input.port);
    }

    TfNode& add(std::string name, std::string op, std::vector<TfInput> inputs) {
        TfNode node;
        node.name = std::move(name);
        node.op = std::move(op);
        node.inputs = std::move(inputs);
        fresh_.push_back(std::move(node));
        return fresh_.back();
    }

    TfInput constant(const std::string& name, TfTensor value) {
        TfNode& node = add(fresh_name(name), "Const", {});
        node.attributes.set("dtype", value.type());
        node.attributes.set("value", std::move(value));
        return TfInput::of(node.name);
    }

    TfInput constant(const std::string& name, float value) {
        return constant(name, TfTensor(Tensor::scalar<float>(value)));
    }

    // The constants that say what the bytes of a tensor mean; one pair per root, so that a new range reaches everybody.
    std::pair<TfInput, TfInput> range(const std::string& tensor) {
        const std::string& root = values_.root(tensor);
        const auto found = range_nodes_.find(root);
        if (found != range_nodes_.end()) return found->second;
        const Stored& stored = values_.stored(root);
        const std::string stem = stem_of(root);
        // A concatenation says itself what it made of its inputs, whose ranges may still be changed.
        const TfNode* node = graph_.find(stem);
        if (node != nullptr && node->op == "ConcatV2" &&
            values_.islands().passive.contains(const_cast<TfNode*>(node)))
            return range_nodes_
                .emplace(root, std::pair(TfInput::of(bytes_.at(stem), 1), TfInput::of(bytes_.at(stem), 2)))
                .first->second;
        const std::pair nodes(constant(stem + "/int8_min", stored.range_min()),
                              constant(stem + "/int8_max", stored.range_max()));
        return range_nodes_.emplace(root, nodes).first->second;
    }

    // The values that the first and the last byte of a tensor with an offset stand for.
    std::pair<TfInput, TfInput> shifted_range(const std::string& tensor, const std::string& what) {
        const Stored& stored = values_.stored(tensor);
        const std::string stem = TfInput(tensor).node + "/" + what;
        return {constant(stem + "_min", static_cast<float>(-stored.offset())),
                constant(stem + "_max", static_cast<float>(stored.scale * 255 - stored.offset()))};
    }

    // The bytes of a tensor; a float tensor is quantized once for all who read it.
    TfInput bytes(const std::string& tensor) {
        const auto found = bytes_.find(tensor);
        if (found != bytes_.end()) return TfInput::of(found->second);
        const Stored& stored = values_.stored(tensor);
        const bool offset = stored.zero_point != 0;
        const auto [low, high] = offset ? shifted_range(tensor, "quantize") : range(tensor);
        const std::string name = fresh_name(stem_of(tensor) + "/quantize");
        TfNode& node = add(name, "QuantizeV2", {TfInput(tensor), low, high});
        node.attributes.set("T", type_of(stored));
        node.attributes.set("mode", offset ? "MIN_FIRST" : "SCALED");
        node.attributes.set("round_mode", offset ? "HALF_AWAY_FROM_ZERO" : "HALF_TO_EVEN");
        node.attributes.set("narrow_range", stored.is_signed);  // otherwise signed values are scaled to 128
        node.attributes.set("ensure_minimum_range", 0.0F);
        bytes_[tensor] = name;
        ++report_.quantize;
        return TfInput::of(name);
    }

    // Floats from bytes, under the name that they always had.
    void dequantize(const std::string& tensor) {
        const Stored& stored = values_.stored(tensor);
        const bool offset = stored.zero_point != 0;
        const std::pair<TfInput, TfInput> borders =
            offset ? shifted_range(tensor, "dequantize") : range(tensor);
        TfNode& node = add(tensor, "Dequantize", {bytes(tensor), borders.first, borders.second});
        node.attributes.set("T", type_of(stored));
        node.attributes.set("mode", offset ? "MIN_FIRST" : "SCALED");
        node.attributes.set("dtype", kFloat);
        ++report_.dequantize;
    }

    // What is added to the sums of products, but for what the offset of the input makes.
    std::vector<double> summands(const Fused& fused, double result_offset) const {
        const Channels channels = *output_channels(graph_, *fused.product);
        std::vector<double> values(static_cast<size_t>(channels.count), 0.0);
        if (fused.bias != nullptr) values = bias_of(graph_, *fused.bias, channels)->values;
        const double summand_offset =
            fused.sum != nullptr ? values_.stored(fused.summand.text()).offset() : 0.0;
        for (double& value : values) value += result_offset - summand_offset;
        return values;
    }

    // TensorFlow brings the bias to the scale of input times weights, in 32 bits. Where the products are so small that it would not fit,
    // they do not count beside it, and get a coarser scale.
    std::vector<float> least_limits(const Fused& fused, const std::vector<double>& summands) const {
        constexpr double kMost = 1 << 30;
        const double scale = values_.stored(fused.product->inputs[0].text()).scale;
        std::vector<float> limits;
        for (const double value : summands)
            limits.push_back(static_cast<float>(127 * std::fabs(value) / (kMost * scale)));
        return limits;
    }

    // Bias and offsets in one: x is stored as x + offset, the sum of its weights takes that out again.
    TfInput bias(const Fused& fused, const QuantizedWeights& weights, const std::vector<double>& summands) {
        const auto channels = static_cast<int64_t>(summands.size());
        const double input_offset = values_.stored(fused.product->inputs[0].text()).offset();
        std::vector<float> result(summands.size());
        for (size_t c = 0; c < summands.size(); ++c)
            result[c] = static_cast<float>(summands[c] - input_offset * weights.channel_sum[c]);
        return constant(fused.product->name + "/int8_bias", Tensor::of<float>({channels}, result));
    }

    std::pair<TfInput, TfInput> weight_range(const Fused& fused, const QuantizedWeights& weights) {
        const Shape shape =
            weights.limits.size() == 1 ? Shape{} : Shape{static_cast<int64_t>(weights.limits.size())};
        std::vector<float> low(weights.limits);
        for (float& limit : low) limit = -limit;
        return {
            constant(fused.product->name + "/int8_weights_min", Tensor::of<float>(shape, low)),
            constant(fused.product->name + "/int8_weights_max", Tensor::of<float>(shape, weights.limits))};
    }

    void emit(const Fused& fused) {
        const std::string& result = fused.last().name;
        const bool as_bytes = needs_bytes(fused);
        const auto chosen = options_.choices.find(fused.product->name);
        const OperatorChoice choice = chosen == options_.choices.end() ? OperatorChoice{} : chosen->second;
        const std::vector<double> added = summands(fused, as_bytes ? values_.stored(result).offset() : 0.0);
        const QuantizedWeights weights =
            quantize_weights(graph_, *fused.product, choice.weights == Granularity::per_channel, choice.bits,
                             least_limits(fused, added));
        if (fused.product->op == "MatMul")
            emit_product(fused, weights, bias(fused, weights, added), as_bytes);
        else
            emit_convolution(fused, weights, bias(fused, weights, added), as_bytes);
        if (as_bytes && has_float_reader(fused.last())) dequantize(result);
        std::vector<std::string> parts;
        for (const TfNode* node : {fused.bias, fused.sum})
            if (node != nullptr) parts.push_back(node->op);
        if (fused.activation != nullptr) parts.push_back(fused.curve);
        report_.operators.push_back({fused.product->name, fused.product->op, true,
                                     parts.empty() ? "" : fmt::format("with {}", fmt::join(parts, ", "))});
        for (const TfNode* node : fused.nodes()) old_.push_back(node);
    }

    void emit_product(const Fused& fused, const QuantizedWeights& weights, const TfInput& bias,
                      bool as_bytes) {
        const std::string& result = fused.last().name;
        const std::string input = fused.product->inputs[0].text();
        const auto [low, high] = range(input);
        const auto [weights_low, weights_high] = weight_range(fused, weights);
        std::vector<TfInput> inputs{
            bytes(input), constant(fused.product->name + "/int8_weights", TfTensor(weights.bytes, kQint8)),
            bias,         low,
            high,         weights_low,
            weights_high};
        std::vector<std::string> ops{"BiasAdd"};
        if (fused.activation != nullptr) ops.push_back(fused.curve);
        ops.emplace_back(as_bytes ? "Requantize" : "Dequantize");
        TfType type = kFloat;
        std::vector<TfType> ranges;
        if (as_bytes) {
            const auto [result_low, result_high] = range(result);
            inputs.insert(inputs.end(), {result_low, result_high});
            type = type_of(values_.stored(result));
            ranges.assign(2, kFloat);
        }
        const TfType input_type = type_of(values_.stored(input));
        const size_t host_inputs = inputs.size() - 3;
        TfNode& node = add(as_bytes ? bytes_.at(result) : result, "_QuantizedMatMul", std::move(inputs));
        node.attributes.set("Tdevice_inputs", types({input_type, kQint8, kFloat}));
        node.attributes.set("Thost_inputs", types(std::vector<TfType>(host_inputs, kFloat)));
        node.attributes.set("Tdevice_outputs", types({type}));
        node.attributes.set("Thost_outputs", types(ranges));
        node.attributes.set("T1", input_type);
        node.attributes.set("T2", kQint8);
        node.attributes.set("Tbias", kFloat);
        node.attributes.set("U", kFloat);
        node.attributes.set("Tout", type);
        node.attributes.set("transpose_a", false);
        node.attributes.set("transpose_b", false);
        node.attributes.set("is_weight_const", true);
        node.attributes.set("is_bias_const", true);
        node.attributes.set("input_quant_mode", "SCALED");
        node.attributes.set("output_quant_mode", "SCALED");
        node.attributes.set("fused_ops", strings(std::move(ops)));
    }

    // The convolution with a result of 32 bits; fuse_quantized_conv_and_requantize makes one operator of it and what follows.
    void emit_convolution(const Fused& fused, const QuantizedWeights& weights, const TfInput& bias,
                          bool as_bytes) {
        const TfNode& product = *fused.product;
        const std::string& result = fused.last().name;
        const std::string input = product.inputs[0].text();
        const TfType input_type = type_of(values_.stored(input));
        const auto [low, high] = range(input);
        const auto [weights_low, weights_high] = weight_range(fused, weights);
        std::vector<TfInput> inputs{
            bytes(input), constant(product.name + "/int8_weights", TfTensor(weights.bytes, kQint8)), bias};
        std::vector<TfType> devices{input_type, kQint8, kFloat};
        std::vector<std::string> ops{"BiasAdd"};
        TfType summand_type = kQint32;
        if (fused.sum != nullptr) {
            inputs.push_back(bytes(fused.summand.text()));
            summand_type = type_of(values_.stored(fused.summand.text()));
            devices.push_back(summand_type);
            ops.emplace_back("Sum");
        }
        inputs.insert(inputs.end(), {low, high, weights_low, weights_high});
        if (fused.sum != nullptr) {
            const auto [summand_low, summand_high] = range(fused.summand.text());
            inputs.insert(inputs.end(), {summand_low, summand_high});
        }
        // Sums come with Relu only. Without one in the graph the result has an offset that makes all of it positive.
        if (fused.activation != nullptr || fused.sum != nullptr) ops.emplace_back("Relu");
        const std::string name = fresh_name(product.name + "/int32");
        const bool depthwise = product.op == "DepthwiseConv2dNative";
        const size_t host_inputs = inputs.size() - devices.size();
        TfNode& node = add(name, depthwise ? "_FusedQuantizedDepthwiseConv2D" : "_FusedQuantizedConv2D",
                           std::move(inputs));
        node.attributes.set("Tinput", input_type);
        node.attributes.set("Tfilter", kQint8);
        node.attributes.set("Tbias", kFloat);
        node.attributes.set("Tsummand", summand_type);
        node.attributes.set("out_type", kQint32);
        node.attributes.set("Tdevice_inputs", types(std::move(devices)));
        node.attributes.set("Thost_inputs", types(std::vector<TfType>(host_inputs, kFloat)));
        node.attributes.set("Tdevice_outputs", types({kQint32}));
        node.attributes.set("Thost_outputs", types({kFloat, kFloat}));
        node.attributes.set("data_format", "NHWC");
        for (const char* copied : {"strides", "padding", "explicit_paddings", "dilations"})
            if (const TfValue* value = product.attributes.find(copied)) node.attributes.set(copied, *value);
        node.attributes.set("is_filter_const", true);
        node.attributes.set("is_bias_const", true);
        node.attributes.set("fused_ops", strings(std::move(ops)));
        if (as_bytes)
            requantize(name, result);
        else
            floats_of_32_bits(fused, name, weights);
    }

    void requantize(const std::string& name, const std::string& result) {
        const auto [low, high] = range(result);
        TfNode& node = add(bytes_.at(result), "Requantize",
                           {TfInput::of(name), TfInput::of(name, 1), TfInput::of(name, 2), low, high});
        node.attributes.set("Tinput", kQint32);
        node.attributes.set("out_type", type_of(values_.stored(result)));
    }

    // TensorFlow brings all channels to the scale of the widest one before it stores 32 bits. Its Dequantize has no kernel
    // for them, but a cast and a product are exact enough: bits of the sum beyond a float's are no information.
    void floats_of_32_bits(const Fused& fused, const std::string& name, const QuantizedWeights& weights) {
        const Stored& input = values_.stored(fused.product->inputs[0].text());
        const double widest = *std::ranges::max_element(weights.limits) / 127.0;
        TfNode& bits = add(fresh_name(fused.product->name + "/bits"), "Bitcast", {TfInput::of(name)});
        bits.attributes.set("T", kQint32);
        bits.attributes.set("type", kInt32);
        TfNode& numbers = add(fresh_name(fused.product->name + "/numbers"), "Cast", {TfInput::of(bits.name)});
        numbers.attributes.set("SrcT", kInt32);
        numbers.attributes.set("DstT", kFloat);
        numbers.attributes.set("Truncate", false);
        // From the range of the input, not from its scale: ranges may still be changed.
        const TfInput step = constant(fused.product->name + "/int32_step",
                                      static_cast<float>(widest / (input.is_signed ? 127 : 255)));
        TfNode& scale = add(fresh_name(fused.product->name + "/int32_scale"), "Mul",
                            {range(fused.product->inputs[0].text()).second, step});
        scale.attributes.set("T", kFloat);
        const bool clipped = fused.activation != nullptr && fused.activation->op == "Relu6";
        const std::string& result = fused.last().name;
        const std::string product = clipped ? fresh_name(result + "/unclipped") : result;
        TfNode& floats = add(product, "Mul", {TfInput::of(numbers.name), TfInput::of(scale.name)});
        floats.attributes.set("T", kFloat);
        if (clipped) add(result, "Relu6", {TfInput::of(product)}).attributes.set("T", kFloat);
        ++report_.dequantize;
    }

    void emit_passive(TfNode& passive) {
        std::vector<TfInput> inputs;
        const size_t tensors = passive_tensors(passive);
        std::vector<TfInput> lows;
        std::vector<TfInput> highs;
        for (size_t i = 0; i < tensors; ++i) {
            const std::string tensor = passive.inputs[i].text();
            inputs.push_back(bytes(tensor));
            lows.push_back(range(tensor).first);
            highs.push_back(range(tensor).second);
        }
        const TfType type = type_of(values_.stored(passive.inputs[0].text()));
        for (size_t i = tensors; i < passive.data_inputs(); ++i) inputs.push_back(passive.inputs[i]);
        const bool reshape = passive.op == "Reshape" || passive.op == "Squeeze" || passive.op == "Pad";
        if (!reshape) {
            inputs.insert(inputs.end(), lows.begin(), lows.end());
            inputs.insert(inputs.end(), highs.begin(), highs.end());
        }
        TfNode& node =
            add(bytes_.at(passive.name), reshape ? passive.op : integer_name(passive.op), std::move(inputs));
        node.attributes = passive.attributes;
        node.attributes.set("T", type);
        for (const char* absent : {"data_format", "explicit_paddings"})
            if (!reshape) node.attributes.erase(absent);
        report_.operators.push_back({passive.name, passive.op, true, ""});
        if (has_float_reader(passive)) dequantize(passive.name);
        old_.push_back(&passive);
    }

    static std::string integer_name(const std::string& op) {
        return op == "MaxPool"   ? "QuantizedMaxPool"
               : op == "AvgPool" ? "QuantizedAvgPool"
                                 : "QuantizedConcatV2";
    }

    void replace_old_nodes() {
        graph_.remove(old_);
        for (TfNode& node : fresh_) graph_.add(std::move(node));
    }

    void report_rest() {
        for (const auto& [name, reason] : values_.islands().left_out) {
            const TfNode* node = graph_.find(name);
            report_.operators.push_back({name, node == nullptr ? "" : node->op, false, reason});
        }
        for (const auto& [name, reason] : values_.notes()) {
            const TfNode* node = graph_.find(name);
            report_.operators.push_back({name, node == nullptr ? "" : node->op, false, reason});
        }
    }

    TfGraph& graph_;
    const IslandOptions& options_;
    const IntegerValues& values_;
    std::unordered_map<std::string, std::vector<TfGraph::Use>> uses_;
    Wanted wanted_;
    std::set<const TfNode*> products_;
    std::map<const TfNode*, std::string> sums_;           // and the summand they read as bytes
    std::unordered_map<std::string, std::string> bytes_;  // tensor -> node that has its bytes
    std::unordered_map<std::string, std::pair<TfInput, TfInput>> range_nodes_;
    std::vector<const TfNode*> old_;
    std::list<TfNode> fresh_;
    std::unordered_set<std::string> given_;  // names, to nodes of it and others to come
    IntegerReport report_;
};

}  // namespace

IntegerReport write_integer_graph(TfGraph& graph, const IslandOptions& options, const Ranges& ranges,
                                  const std::function<void(const TfGraph&)>& before_fusing) {
    IntegerReport report;
    {
        const IntegerValues values(graph, find_islands(graph, options), ranges);
        report = Emission(graph, options, values).run();
    }
    if (before_fusing) before_fusing(graph);
    Wanted wanted;
    for (const std::string& output : options.outputs) wanted.insert(TfInput(output).node);
    fuse_quantized_conv_and_requantize(graph, wanted);
    rerange_quantized_concat(graph);
    strip_unused(graph, options.inputs, options.outputs);
    check(graph);
    return report;
}

}  // namespace kilter::tensorflow
