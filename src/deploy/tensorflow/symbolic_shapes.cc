#include "deploy/tensorflow/symbolic_shapes.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace kilter::tensorflow {
namespace {

using Maybe = std::optional<SymbolicShape>;

constexpr std::array<std::string_view, 23> kSameShape{"Identity", "Relu",
                                                      "Relu6",    "LeakyRelu",
                                                      "Elu",      "Selu",
                                                      "Sigmoid",  "Tanh",
                                                      "Softmax",  "BiasAdd",
                                                      "Swish",    "FusedBatchNorm",
                                                      "Neg",      "FusedBatchNormV2",
                                                      "Sqrt",     "FusedBatchNormV3",
                                                      "Softplus", "Print",
                                                      "LRN",      "CheckNumerics",
                                                      "Exp",      "Cast",
                                                      "Square"};
constexpr std::array<std::string_view, 8> kBinary{"Add",     "AddV2",   "Sub",     "Mul",
                                                  "RealDiv", "Maximum", "Minimum", "SquaredDifference"};

class Inference {
  public:
    explicit Inference(const TfGraph& graph) : graph_(graph) {}

    SymbolicShapes run() {
        for (const TfNode* node : graph_.sorted())
            if (Maybe shape = infer(*node)) shapes_[node->name] = std::move(*shape);
        return std::move(shapes_);
    }

  private:
    Maybe of(const TfNode& node, size_t index) const {
        if (index >= node.data_inputs()) return std::nullopt;
        const TfInput& input = node.inputs[index];
        const auto found = shapes_.find(input.node);
        return found == shapes_.end() || input.port != 0 ? Maybe() : found->second;
    }

    // The size of a window's results along one axis.
    int64_t windows(int64_t size, int64_t kernel, int64_t stride, const std::string& padding, int64_t added) {
        if (size < 0) {
            const auto [entry, fresh] =
                symbols_.try_emplace({size, padding == "SAME" ? 0 : kernel, stride, padding, added}, next_);
            if (fresh) --next_;
            // SAME with steps of one keeps the size, whatever it is.
            return padding == "SAME" && stride == 1 ? size : entry->second;
        }
        if (padding == "SAME") return (size + stride - 1) / stride;
        return std::max<int64_t>(0, (size + added - kernel) / stride + 1);
    }

    Maybe windowed(const TfNode& node, std::array<int64_t, 2> kernel, int64_t channels) {
        Maybe shape = of(node, 0);
        const std::vector<int64_t> strides = node.attributes.get_ints("strides");
        if (!shape || shape->size() != 4 || strides.size() != 4 ||
            node.attributes.get_string("data_format", "NHWC") != "NHWC")
            return std::nullopt;
        const std::string padding = node.attributes.get_string("padding");
        const std::vector<int64_t> added = node.attributes.get_ints("explicit_paddings");
        for (size_t axis = 1; axis <= 2; ++axis) {
            if (strides[axis] <= 0) return std::nullopt;
            const int64_t zeros =
                padding == "EXPLICIT" && added.size() == 8 ? added[2 * axis] + added[2 * axis + 1] : 0;
            (*shape)[axis] = windows((*shape)[axis], kernel[axis - 1], strides[axis], padding, zeros);
        }
        if (channels >= 0) (*shape)[3] = channels;
        return shape;
    }

    Maybe convolution(const TfNode& node) {
        if (node.data_inputs() != 2) return std::nullopt;
        const std::optional<Tensor> weights = constant_of(graph_, node.inputs[1]);
        if (!weights || weights->rank() != 4) return std::nullopt;
        const std::vector<int64_t> dilations = node.attributes.get_ints("dilations", {1, 1, 1, 1});
        if (dilations.size() != 4) return std::nullopt;
        const auto spread = [&](int axis) { return (weights->dim(axis) - 1) * dilations[axis + 1] + 1; };
        const int64_t channels = node.op == "Conv2D" ? weights->dim(3) : weights->dim(2) * weights->dim(3);
        return windowed(node, {spread(0), spread(1)}, channels);
    }

    Maybe pool(const TfNode& node) {
        const std::vector<int64_t> kernel = node.attributes.get_ints("ksize");
        if (kernel.size() != 4) return std::nullopt;
        return windowed(node, {kernel[1], kernel[2]}, -1);
    }

    Maybe binary(const TfNode& node) const {
        const Maybe a = of(node, 0);
        const Maybe b = of(node, 1);
        if (a && b && *a == *b) return a;
        const auto scalar_or_vector = [](const Maybe& small, const Maybe& large) {
            return small && large && !large->empty() &&
                   (small->empty() ||
                    (small->size() == 1 && (small->back() == large->back() || small->back() == 1)));
        };
        if (scalar_or_vector(b, a)) return a;
        if (scalar_or_vector(a, b)) return b;
        return std::nullopt;
    }

    Maybe concatenation(const TfNode& node) {
        const size_t count = node.data_inputs();
        if (count < 2) return std::nullopt;
        const std::optional<Tensor> axis = constant_of(graph_, node.inputs[count - 1]);
        Maybe shape = of(node, 0);
        if (!axis || axis->size() != 1 || !shape) return std::nullopt;
        int64_t at = axis->to_ints()[0];
        const auto rank = static_cast<int64_t>(shape->size());
        if (at < 0) at += rank;
        if (at < 0 || at >= rank) return std::nullopt;
        for (size_t i = 1; i + 1 < count; ++i) {
            const Maybe next = of(node, i);
            if (!next || next->size() != shape->size() || (*next)[at] < 0 || (*shape)[at] < 0)
                return std::nullopt;
            (*shape)[at] += (*next)[at];
        }
        return shape;
    }

    Maybe placeholder(const TfNode& node) {
        const TfShape shape = node.attributes.get_shape("shape");
        if (!shape.dims) return std::nullopt;
        SymbolicShape dims = *shape.dims;
        for (int64_t& dim : dims)
            if (dim < 0) dim = next_--;
        return dims;
    }

    Maybe padded(const TfNode& node) {
        Maybe shape = of(node, 0);
        if (!shape || node.data_inputs() < 2) return std::nullopt;
        const std::optional<Tensor> amounts = constant_of(graph_, node.inputs[1]);
        if (!amounts || amounts->size() != static_cast<int64_t>(2 * shape->size())) return std::nullopt;
        const std::vector<int64_t> values = amounts->to_ints();
        for (size_t axis = 0; axis < shape->size(); ++axis) {
            const int64_t added = values[2 * axis] + values[2 * axis + 1];
            if (added != 0) (*shape)[axis] = windows((*shape)[axis], 1, 1, "EXPLICIT", added);
        }
        return shape;
    }

    Maybe resized(const TfNode& node) const {
        Maybe shape = of(node, 0);
        if (!shape || shape->size() != 4 || node.data_inputs() != 2) return std::nullopt;
        const std::optional<Tensor> size = constant_of(graph_, node.inputs[1]);
        if (!size || size->size() != 2) return std::nullopt;
        (*shape)[1] = size->to_ints()[0];
        (*shape)[2] = size->to_ints()[1];
        return shape;
    }

    Maybe infer(const TfNode& node) {
        if (node.op == "Const") {
            const TfShape& shape = node.attributes.get_tensor("value").shape();
            return shape.dims ? Maybe(*shape.dims) : Maybe();
        }
        if (node.op.starts_with("Placeholder")) return placeholder(node);
        if (node.op == "Conv2D" || node.op == "DepthwiseConv2dNative") return convolution(node);
        if (node.op == "MaxPool" || node.op == "AvgPool") return pool(node);
        if (node.op == "ConcatV2") return concatenation(node);
        if (node.op == "Pad" || node.op == "PadV2") return padded(node);
        if (node.op == "ResizeBilinear" || node.op == "ResizeNearestNeighbor") return resized(node);
        if (node.op == "AddN") return node.data_inputs() == 2 ? binary(node) : of(node, 0);
        if (std::ranges::find(kBinary, node.op) != kBinary.end()) return binary(node);
        if (std::ranges::find(kSameShape, node.op) != kSameShape.end()) return of(node, 0);
        if (node.op == "MatMul" && node.data_inputs() == 2) {
            const Maybe a = of(node, 0);
            const Maybe b = of(node, 1);
            if (!a || !b || a->size() != 2 || b->size() != 2) return std::nullopt;
            return SymbolicShape{(*a)[node.attributes.get_bool("transpose_a") ? 1 : 0],
                                 (*b)[node.attributes.get_bool("transpose_b") ? 0 : 1]};
        }
        return std::nullopt;
    }

    const TfGraph& graph_;
    SymbolicShapes shapes_;
    std::map<std::tuple<int64_t, int64_t, int64_t, std::string, int64_t>, int64_t> symbols_;
    int64_t next_ = -1;
};

}  // namespace

SymbolicShapes symbolic_shapes(const TfGraph& graph) { return Inference(graph).run(); }

}  // namespace kilter::tensorflow
