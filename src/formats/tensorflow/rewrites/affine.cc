#include "formats/tensorflow/rewrites/affine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace kilter::tensorflow {
namespace {

// Longer chains of arithmetic on constants are no normalization.
constexpr int kDeepestExpression = 16;
// Statistics are vectors; nothing large is computed here.
constexpr int64_t kLargestExpression = 1 << 20;

std::optional<Tensor> float_constant(const TfGraph& graph, const TfInput& input) {
    const TfNode* node = graph.producer(input);
    if (node == nullptr || input.control) return std::nullopt;
    std::optional<Tensor> value = constant_of(graph, input);
    if (!value || (value->dtype() != DType::f32 && value->dtype() != DType::f64)) return std::nullopt;
    return value->converted(DType::f32);
}

using Function = std::function<double(double, double)>;

Function arithmetic(const std::string& op) {
    if (op == "Add" || op == "AddV2" || op == "BiasAdd") return [](double a, double b) { return a + b; };
    if (op == "Sub") return [](double a, double b) { return a - b; };
    if (op == "Mul") return [](double a, double b) { return a * b; };
    if (op == "RealDiv") return [](double a, double b) { return a / b; };
    if (op == "Rsqrt") return [](double a, double) { return 1.0 / std::sqrt(a); };
    if (op == "Sqrt") return [](double a, double) { return std::sqrt(a); };
    if (op == "Neg") return [](double a, double) { return -a; };
    return nullptr;
}

// The same numbers in the form that an Identity, Squeeze or Reshape gives them.
std::optional<Tensor> reshaped(const TfGraph& graph, const TfNode& node, const std::optional<Tensor>& value) {
    if (!value || node.op == "Identity") return value;
    Shape shape;
    if (node.op == "Squeeze") {
        std::ranges::copy_if(value->shape(), std::back_inserter(shape), [](int64_t dim) { return dim != 1; });
    } else {
        const auto wanted = node.data_inputs() == 2 ? constant_of(graph, node.inputs[1]) : std::nullopt;
        if (!wanted || wanted->rank() != 1) return std::nullopt;
        shape = wanted->to_ints();
        int64_t known = 1;
        for (const int64_t dim : shape) known *= dim < 0 ? 1 : dim;
        for (int64_t& dim : shape)
            if (dim < 0 && known > 0) dim = value->size() / known;
    }
    if (std::ranges::any_of(shape, [](int64_t dim) { return dim <= 0; }) ||
        element_count(shape) != value->size())
        return std::nullopt;
    return value->reshaped(shape);
}

std::optional<Tensor> evaluate(const TfGraph& graph, const TfInput& input, int depth) {
    if (std::optional<Tensor> constant = float_constant(graph, input)) return constant;
    const TfNode* node = graph.producer(input);
    if (depth == 0 || node == nullptr || input.port != 0 || input.control) return std::nullopt;
    if (node->op == "Identity" || node->op == "Squeeze" || node->op == "Reshape")
        return reshaped(graph, *node,
                        node->inputs.empty() ? std::nullopt : evaluate(graph, node->inputs[0], depth - 1));
    const Function apply = arithmetic(node->op);
    const size_t inputs = node->data_inputs();
    const bool unary = node->op == "Rsqrt" || node->op == "Sqrt" || node->op == "Neg";
    if (!apply || inputs != (unary ? 1U : 2U)) return std::nullopt;
    const std::optional<Tensor> a = evaluate(graph, node->inputs[0], depth - 1);
    const std::optional<Tensor> b = unary ? a : evaluate(graph, node->inputs[1], depth - 1);
    if (!a || !b || a->size() > kLargestExpression || b->size() > kLargestExpression) return std::nullopt;
    const auto is_vector = [](const Tensor& t) { return t.rank() > 0 && t.dim(-1) == t.size(); };
    const bool vectors = a->size() == b->size() && is_vector(*a) && is_vector(*b);
    const bool broadcast_ok = a->shape() == b->shape() || a->size() == 1 || b->size() == 1 || vectors;
    if (!broadcast_ok) return std::nullopt;
    const Tensor& larger = a->size() > b->size() || a->rank() > b->rank() ? *a : *b;
    Tensor result(DType::f32, larger.shape());
    const auto left = a->as<float>();
    const auto right = b->as<float>();
    std::span<float> to = result.as_mutable<float>();
    for (size_t i = 0; i < to.size(); ++i)
        to[i] = static_cast<float>(apply(left[left.size() == 1 ? 0 : i], right[right.size() == 1 ? 0 : i]));
    return result;
}

bool channels_last(const TfNode& node) { return node.attributes.get_string("data_format", "NHWC") == "NHWC"; }

}  // namespace

bool is_convolution(const TfNode& node) { return node.op == "Conv2D" || node.op == "DepthwiseConv2dNative"; }

bool is_product(const TfNode& node) { return is_convolution(node) || node.op == "MatMul"; }

const std::vector<TfGraph::Use>& Readers::of(const TfNode& node) const {
    static const std::vector<TfGraph::Use> none;
    const auto found = uses_.find(node.name);
    return found == uses_.end() ? none : found->second;
}

bool Readers::has_single_reader(const TfNode& node) const {
    const std::vector<TfGraph::Use>& uses = of(node);
    return uses.size() == 1 && !wanted_.contains(node.name) && uses[0].node->inputs[uses[0].index].port == 0;
}

std::optional<Tensor> constant_expression(const TfGraph& graph, const TfInput& input) {
    return evaluate(graph, input, kDeepestExpression);
}

std::optional<std::vector<double>> per_channel(const TfGraph& graph, const TfInput& input, int64_t channels) {
    const std::optional<Tensor> value = constant_expression(graph, input);
    if (!value) return std::nullopt;
    if (value->size() == 1) return std::vector<double>(static_cast<size_t>(channels), value->to_doubles()[0]);
    if (value->size() != channels || value->dim(-1) != channels) return std::nullopt;
    return value->to_doubles();
}

Affine Affine::identity(int64_t channels) {
    const auto count = static_cast<size_t>(channels);
    return {std::vector<double>(count, 1.0), std::vector<double>(count, 0.0)};
}

void Affine::multiply(const std::vector<double>& by) {
    for (size_t c = 0; c < by.size(); ++c) {
        scale[c] *= by[c];
        shift[c] *= by[c];
    }
}

void Affine::divide(const std::vector<double>& by) {
    for (size_t c = 0; c < by.size(); ++c) {
        scale[c] /= by[c];
        shift[c] /= by[c];
    }
}

void Affine::add(const std::vector<double>& summand, double sign) {
    for (size_t c = 0; c < summand.size(); ++c) shift[c] += sign * summand[c];
}

std::optional<int64_t> output_channels(const TfGraph& graph, const TfNode& product) {
    if (!is_product(product) || product.data_inputs() != 2) return std::nullopt;
    const std::optional<Tensor> weights = constant_of(graph, product.inputs[1]);
    if (!weights || weights->dtype() != DType::f32) return std::nullopt;
    if (product.op == "MatMul") {
        if (weights->rank() != 2) return std::nullopt;
        return weights->dim(product.attributes.get_bool("transpose_b") ? 0 : 1);
    }
    if (weights->rank() != 4 || !channels_last(product)) return std::nullopt;
    return product.op == "Conv2D" ? weights->dim(3) : weights->dim(2) * weights->dim(3);
}

std::optional<Bias> bias_of(const TfGraph& graph, const TfNode& node, int64_t channels) {
    const bool bias_add = node.op == "BiasAdd" && channels_last(node);
    if ((!bias_add && node.op != "Add" && node.op != "AddV2") || node.data_inputs() != 2) return std::nullopt;
    if (auto values = per_channel(graph, node.inputs[1], channels)) return Bias{std::move(*values), 0};
    if (bias_add) return std::nullopt;
    if (auto values = per_channel(graph, node.inputs[0], channels)) return Bias{std::move(*values), 1};
    return std::nullopt;
}

std::optional<Product> product_of(TfGraph& graph, const Readers& readers, const TfInput& input) {
    TfNode* node = graph.producer(input);
    if (node == nullptr || input.port != 0 || input.control || !readers.has_single_reader(*node))
        return std::nullopt;
    if (const std::optional<int64_t> channels = output_channels(graph, *node))
        return Product{node, nullptr, *channels};
    // A bias between: how many channels it has, the product below tells.
    for (size_t i = 0; i < std::min<size_t>(node->data_inputs(), 2); ++i) {
        TfNode* below = graph.producer(node->inputs[i]);
        if (below == nullptr || !is_product(*below) || !readers.has_single_reader(*below)) continue;
        const std::optional<int64_t> channels = output_channels(graph, *below);
        if (!channels) continue;
        const std::optional<Bias> bias = bias_of(graph, *node, *channels);
        if (bias && bias->data_input == i) return Product{below, node, *channels};
    }
    return std::nullopt;
}

void remove_leftovers(TfGraph& graph, const Readers& before, const Wanted& wanted) {
    std::vector<const TfNode*> leftovers;
    do {
        leftovers.clear();
        const Readers now(graph, wanted);
        for (const auto& node : graph.nodes())
            if (now.of(*node).empty() && !before.of(*node).empty() && !wanted.contains(node->name))
                leftovers.push_back(node.get());
        graph.remove(leftovers);
    } while (!leftovers.empty());
}

void scale_weights(TfGraph& graph, TfNode& product, const std::vector<double>& scale) {
    const Tensor old = *constant_of(graph, product.inputs[1]);
    Tensor scaled(DType::f32, old.shape());
    const auto from = old.as<float>();
    const auto to = scaled.as_mutable<float>();
    // Output channels are the innermost elements, but for a transposed matrix.
    const bool rows = product.op == "MatMul" && product.attributes.get_bool("transpose_b");
    const size_t inner = rows ? static_cast<size_t>(old.dim(1)) : 1;
    for (size_t i = 0; i < to.size(); ++i)
        to[i] = static_cast<float>(from[i] * scale[(i / inner) % scale.size()]);
    const std::string name = graph.fresh_name(product.name + "/weights_folded");
    graph.add_constant(name, std::move(scaled));
    product.inputs[1] = TfInput::of(name);
}

void fold(TfGraph& graph, const Product& product, const Affine& affine, TfNode& last) {
    const auto channels = static_cast<size_t>(product.channels);
    std::vector<float> bias(channels);
    std::optional<Bias> before;
    if (product.bias != nullptr) before = bias_of(graph, *product.bias, product.channels);
    for (size_t c = 0; c < channels; ++c)
        bias[c] = static_cast<float>(affine.shift[c] + (before ? before->values[c] * affine.scale[c] : 0.0));
    scale_weights(graph, *product.node, affine.scale);
    const std::string name = graph.fresh_name(last.name + "/bias_folded");
    graph.add_constant(name, Tensor::of<float>({product.channels}, bias));
    const TfType type = product.node->attributes.get_type("T", kFloat);
    last.op = "BiasAdd";
    last.attributes = {};
    last.attributes.set("T", type);
    last.attributes.set("data_format", "NHWC");
    last.inputs = {TfInput::of(product.node->name), TfInput::of(name)};
}

}  // namespace kilter::tensorflow
