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
        const std::vector<int64_t> axes = node.attributes.get_ints("squeeze_dims");
        std::vector<bool> squeezed(static_cast<size_t>(value->rank()), axes.empty());
        for (const int64_t axis : axes) {
            const int64_t place = axis < 0 ? axis + value->rank() : axis;
            if (place < 0 || place >= value->rank() || value->dim(place) != 1) return std::nullopt;
            squeezed[static_cast<size_t>(place)] = true;
        }
        for (size_t i = 0; i < squeezed.size(); ++i)
            if (!squeezed[i] || value->shape()[i] != 1) shape.push_back(value->shape()[i]);
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

std::optional<Tensor> combined(const Function& apply, const Tensor& a, const Tensor& b) {
    if (a.size() > kLargestExpression || b.size() > kLargestExpression) return std::nullopt;
    const auto is_vector = [](const Tensor& t) { return t.rank() > 0 && t.dim(-1) == t.size(); };
    const bool vectors = a.size() == b.size() && is_vector(a) && is_vector(b);
    if (a.shape() != b.shape() && a.size() != 1 && b.size() != 1 && !vectors) return std::nullopt;
    Shape shape = a.size() > b.size() ? a.shape() : b.shape();
    shape.insert(shape.begin(), static_cast<size_t>(std::max(a.rank(), b.rank())) - shape.size(), 1);
    Tensor result(DType::f32, shape);
    const auto left = a.as<float>();
    const auto right = b.as<float>();
    std::span<float> to = result.as_mutable<float>();
    for (size_t i = 0; i < to.size(); ++i)
        to[i] = static_cast<float>(apply(left[left.size() == 1 ? 0 : i], right[right.size() == 1 ? 0 : i]));
    return result;
}

class Evaluation {
  public:
    explicit Evaluation(const TfGraph& graph) : graph_(graph) {}

    std::optional<Tensor> value(const TfInput& input, int depth = kDeepestExpression) {
        if (std::optional<Tensor> constant = float_constant(graph_, input)) return constant;
        const TfNode* node = graph_.producer(input);
        if (depth == 0 || node == nullptr || input.port != 0 || input.control) return std::nullopt;
        const auto known = known_.find(node);
        if (known != known_.end()) return known->second;
        return known_[node] = compute(*node, depth - 1);
    }

  private:
    std::optional<Tensor> compute(const TfNode& node, int depth) {
        if (node.op == "Identity" || node.op == "Squeeze" || node.op == "Reshape")
            return reshaped(graph_, node, node.inputs.empty() ? std::nullopt : value(node.inputs[0], depth));
        const Function apply = arithmetic(node.op);
        const bool unary = node.op == "Rsqrt" || node.op == "Sqrt" || node.op == "Neg";
        if (!apply || node.data_inputs() != (unary ? 1U : 2U)) return std::nullopt;
        const std::optional<Tensor> a = value(node.inputs[0], depth);
        const std::optional<Tensor> b = unary ? a : value(node.inputs[1], depth);
        return a && b ? combined(apply, *a, *b) : std::nullopt;
    }

    const TfGraph& graph_;
    std::unordered_map<const TfNode*, std::optional<Tensor>> known_;
};

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
    return Evaluation(graph).value(input);
}

std::optional<std::vector<double>> per_channel(const TfGraph& graph, const TfInput& input,
                                               const Channels& channels_of) {
    const std::optional<Tensor> value = constant_expression(graph, input);
    // A constant of more dimensions gives the result more of them.
    if (!value || value->rank() > channels_of.rank) return std::nullopt;
    const int64_t channels = channels_of.count;
    if (value->size() == 1) return std::vector<double>(static_cast<size_t>(channels), value->to_doubles()[0]);
    if (value->size() != channels || value->dim(-1) != channels) return std::nullopt;
    return value->to_doubles();
}

Affine Affine::identity(const Channels& channels) {
    const auto count = static_cast<size_t>(channels.count);
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

std::optional<Channels> output_channels(const TfGraph& graph, const TfNode& product) {
    if (!is_product(product) || product.data_inputs() != 2) return std::nullopt;
    const std::optional<Tensor> weights = constant_of(graph, product.inputs[1]);
    if (!weights || weights->dtype() != DType::f32) return std::nullopt;
    if (product.op == "MatMul") {
        if (weights->rank() != 2) return std::nullopt;
        return Channels{weights->dim(product.attributes.get_bool("transpose_b") ? 0 : 1), 2};
    }
    if (weights->rank() != 4 || !channels_last(product)) return std::nullopt;
    return Channels{product.op == "Conv2D" ? weights->dim(3) : weights->dim(2) * weights->dim(3), 4};
}

std::optional<Bias> bias_of(const TfGraph& graph, const TfNode& node, const Channels& channels) {
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
    if (const std::optional<Channels> channels = output_channels(graph, *node))
        return Product{node, nullptr, *channels};
    // A bias between: how many channels it has, the product below tells.
    for (size_t i = 0; i < std::min<size_t>(node->data_inputs(), 2); ++i) {
        TfNode* below = graph.producer(node->inputs[i]);
        if (below == nullptr || !is_product(*below) || !readers.has_single_reader(*below)) continue;
        const std::optional<Channels> channels = output_channels(graph, *below);
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
    const auto channels = static_cast<size_t>(product.channels.count);
    std::vector<float> bias(channels);
    std::optional<Bias> before;
    if (product.bias != nullptr) before = bias_of(graph, *product.bias, product.channels);
    for (size_t c = 0; c < channels; ++c)
        bias[c] = static_cast<float>(affine.shift[c] + (before ? before->values[c] * affine.scale[c] : 0.0));
    scale_weights(graph, *product.node, affine.scale);
    const std::string name = graph.fresh_name(last.name + "/bias_folded");
    graph.add_constant(name, Tensor::of<float>({product.channels.count}, bias));
    const TfType type = product.node->attributes.get_type("T", kFloat);
    last.op = "BiasAdd";
    last.attributes = {};
    last.attributes.set("T", type);
    last.attributes.set("data_format", "NHWC");
    last.inputs = {TfInput::of(product.node->name), TfInput::of(name)};
}

}  // namespace kilter::tensorflow
