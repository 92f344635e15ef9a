#include "engine/micro_batch.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "graph/extract.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

// Activations of one operator beyond this, per thread, no longer stay in its second-level cache and the shared one.
// MobileNetV2 at batch 16 took 8.9 ms of one core per image in one go and 7.1 ms image by image (docs/engine.md).
constexpr int64_t kCacheBytesPerThread = int64_t{2} << 20;

// ResNet-50 and BERT, whose weights outweigh their activations, gained nothing from slices below this; MobileNetV2 did.
constexpr int64_t kActivationsPerWeight = 3;

class Samples {
  public:
    Samples(const Specialized& known, int64_t batch) : known_(known), batch_(batch) {}

    void mark(const Value* value) { batched_.insert(value); }
    bool batched(const Value* value) const { return value != nullptr && batched_.contains(value); }

    //! Can the node be computed sample by sample? Marks its outputs when it reads samples.
    bool accept(const Node& node) {
        const std::vector<Value*> read = values_read(node);
        if (std::ranges::none_of(read, [&](const Value* value) { return batched(value); })) return true;
        if (!node.subgraphs().empty() || !keeps_samples(node)) return false;
        for (const Value* value : node.outputs()) {
            if (value == nullptr) continue;
            if (shape(value).empty() || shape(value)[0] != batch_) return false;
            mark(value);
        }
        return true;
    }

  private:
    Shape shape(const Value* value) const {
        return known_.types[static_cast<size_t>(value->id())].static_shape();
    }

    const Tensor* constant(const Value* value) const {
        if (value == nullptr) return nullptr;
        const Tensor& tensor = known_.constants[static_cast<size_t>(value->id())];
        return tensor.empty() ? nullptr : &tensor;
    }

    // Broadcasting against samples: an operand without samples must not have an axis beside theirs, except of size one.
    bool broadcasts(const Node& node, size_t first) const {
        const size_t rank = shape(node.output(0)).size();
        for (size_t i = first; i < node.inputs().size(); ++i) {
            const Value* value = node.input(i);
            if (value == nullptr) continue;
            const Shape dims = shape(value);
            const bool has_axis = dims.size() == rank;
            if (batched(value) ? !has_axis : has_axis && dims[0] != 1) return false;
        }
        return true;
    }

    bool only_first_batched(const Node& node, size_t count) const {
        for (size_t i = 1; i < count; ++i)
            if (batched(node.input(i))) return false;
        return batched(node.input(0));
    }

    bool inner_axis(const Node& node, int64_t absent) const {
        const auto rank = static_cast<int64_t>(shape(node.input(0)).size());
        return normalize_axis(node.attributes.get_int("axis", absent), rank) > 0;
    }

    bool inner_axes(const Node& node, size_t input) const {
        const Tensor* axes = constant(node.input(input));
        if (axes == nullptr) return false;
        const auto rank = static_cast<int64_t>(shape(node.input(0)).size());
        return std::ranges::none_of(axes->to_ints(),
                                    [&](int64_t axis) { return axis == 0 || axis == -rank; });
    }

    bool keeps_samples(const Node& node) const {
        const std::string_view op = node.op();
        const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
            return std::ranges::find(names, op) != names.end();
        };
        if (node.domain() == kKilterDomain) {
            if (op == "Conv" || op == "ConvTranspose" || op == "QConv" || op == "QConvTranspose")
                return only_first_batched(node, 3) && broadcasts(node, 3);
            if (op == "MatMul" || op == "QMatMul") return product(node) && broadcasts(node, 3);
            if (op == "QAdd" || op == "QMul") return broadcasts(node, 0);
            if (is_one_of({"QLookup", "QAveragePool", "QGlobalAveragePool"}))
                return only_first_batched(node, node.inputs().size());
            if (op == "QLayerNormalization")
                return only_first_batched(node, node.inputs().size()) && inner_axis(node, -1);
            if (op == "Attention" || op == "QAttention")
                return batched(node.input(0)) && batched(node.input(1)) && batched(node.input(2)) &&
                       broadcasts(node, 3);
            return false;
        }
        if (!node.domain().empty()) return false;
        if (is_one_of({"Relu",
                       "LeakyRelu",
                       "Sigmoid",
                       "Tanh",
                       "Gelu",
                       "Swish",
                       "HardSwish",
                       "HardSigmoid",
                       "Elu",
                       "Selu",
                       "Softplus",
                       "Mish",
                       "Exp",
                       "Log",
                       "Abs",
                       "Sqrt",
                       "Neg",
                       "Erf",
                       "Reciprocal",
                       "Floor",
                       "Ceil",
                       "Cast",
                       "Identity",
                       "Clip",
                       "Not",
                       "GlobalAveragePool",
                       "GlobalMaxPool",
                       "MaxPool",
                       "AveragePool",
                       "LRN",
                       "BatchNormalization",
                       "InstanceNormalization",
                       "Conv",
                       "ConvTranspose",
                       "DepthToSpace",
                       "SpaceToDepth",
                       "QuantizeLinear",
                       "DequantizeLinear"}))
            return only_first_batched(node, node.inputs().size());
        if (is_one_of({"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Sum", "Mean", "Where", "PRelu",
                       "Equal", "Less", "Greater", "And", "Or"}))
            return broadcasts(node, 0);
        if (is_one_of({"Softmax", "LogSoftmax", "LayerNormalization"}))
            return only_first_batched(node, node.inputs().size()) && inner_axis(node, -1);
        if (is_one_of({"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2"}))
            return inner_axes(node, 1);
        if (op == "ArgMax" || op == "ArgMin") return inner_axis(node, 0);
        if (op == "Concat")
            return std::ranges::all_of(node.inputs(), [&](const Value* value) { return batched(value); }) &&
                   inner_axis(node, 0);
        if (op == "Split") return inner_axis(node, 0);
        if (op == "Slice")
            return only_first_batched(node, node.inputs().size()) && node.input(3) != nullptr &&
                   inner_axes(node, 3);
        if (op == "Transpose") {
            const Shape order = node.attributes.get_ints("perm");
            return !order.empty() && order[0] == 0;
        }
        // Row-major order keeps samples together as long as the first axis stays the batch.
        if (is_one_of({"Reshape", "Flatten", "Squeeze", "Unsqueeze"}))
            return only_first_batched(node, node.inputs().size());
        if (op == "Gather") {
            if (batched(node.input(0))) return !batched(node.input(1)) && inner_axis(node, 0);
            return !inner_axis(node, 0);  // rows of a table chosen by each sample
        }
        if (op == "MatMul" || op == "Gemm")
            return product(node) && (op == "MatMul" || node.attributes.get_int("transA") == 0);
        return false;
    }

    bool product(const Node& node) const {
        if (!batched(node.input(0)) || batched(node.input(2))) return false;
        const Shape a = shape(node.input(0));
        const Shape b = shape(node.input(1));
        if (!batched(node.input(1))) {
            const bool transposed = node.attributes.get_int("trans_a") != 0;
            return a.size() >= 2 && b.size() <= a.size() &&
                   (b.size() <= 2 || b[0] == 1 || b.size() < a.size()) && !(transposed && a.size() == 2);
        }
        return a.size() == b.size() && a.size() >= 3;
    }

    const Specialized& known_;
    int64_t batch_;
    std::unordered_set<const Value*> batched_;
};

// The one unknown leading dimension all inputs share, or 0.
int64_t batch_of(const Graph& graph, const Specialized& known) {
    int64_t batch = 0;
    std::string symbol;
    for (const Value* value : graph.inputs()) {
        if (!value->type.shape || value->type.shape->empty()) return 0;
        const Dim& first = value->type.shape->front();
        if (first.known() || (first.symbol.empty() && graph.inputs().size() > 1)) return 0;
        if (value != graph.inputs().front() && first.symbol != symbol) return 0;
        symbol = first.symbol;
        batch = known.types[static_cast<size_t>(value->id())].static_shape()[0];
    }
    return batch;
}

int64_t activation_bytes(const Node& node, const Specialized& known) {
    int64_t bytes = 0;
    const auto add = [&](const Value* value) {
        if (value == nullptr || !known.constants[static_cast<size_t>(value->id())].empty()) return;
        const ValueType& type = known.types[static_cast<size_t>(value->id())];
        bytes += static_cast<int64_t>(byte_count(type.dtype, element_count(type.static_shape())));
    };
    for (const Value* value : node.inputs()) add(value);
    for (const Value* value : node.outputs()) add(value);
    return bytes;
}

// Weights that are read whole; of an embedding table only the chosen rows are.
int64_t weight_bytes(const Node& node, const Specialized& known) {
    if (node.is("Gather")) return 0;
    int64_t bytes = 0;
    for (const Value* value : node.inputs())
        if (value != nullptr)
            bytes += static_cast<int64_t>(known.constants[static_cast<size_t>(value->id())].bytes());
    return bytes;
}

}  // namespace

Slicing micro_batch(const Graph& graph, const Specialized& known, int threads) {
    const int64_t batch = batch_of(graph, known);
    const Slicing whole{batch, 1};
    if (batch < 2 || !known.dynamic.empty()) return whole;

    Samples samples(known, batch);
    for (const Value* value : graph.inputs()) samples.mark(value);
    for (const Node* node : known.nodes)
        if (!samples.accept(*node)) return whole;
    for (const Graph::Output& output : graph.outputs())
        if (!samples.batched(output.value) || output.value->is_input()) return whole;

    // A thread that keeps its samples to itself never waits for another one and finds its activations in its own cache.
    // On two cores that do not share a cache, MobileNetV2 at batch 16 took 97 ms with every operator split between them.
    const int lanes = batch % threads == 0 ? threads : 1;
    const int64_t share = batch / lanes;

    int64_t largest = 1;
    int64_t activations = 1;
    int64_t weights = 0;
    for (const Node* node : known.nodes) {
        largest = std::max(largest, activation_bytes(*node, known));
        activations += activation_bytes(*node, known);
        weights += weight_bytes(*node, known);
    }
    const int64_t cache = kCacheBytesPerThread * (threads / lanes);
    if (largest / lanes <= 2 * cache) return {share, lanes};
    // Every slice reads the weights again: it must move enough activations to make up for that.
    const int64_t least = kActivationsPerWeight * weights / std::max<int64_t>(activations / batch, 1);
    int64_t size = std::max<int64_t>({cache * batch / largest, least, 1});
    while (size < share && share % size != 0) ++size;
    return {std::min(size, share), lanes};
}

}  // namespace kilter::engine
