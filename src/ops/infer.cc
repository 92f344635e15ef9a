#include "ops/infer.h"

#include "base/fail.h"
#include "graph/extract.h"
#include "ops/op.h"
#include "ops/shape_data.h"

namespace kilter {
namespace {

using DataMap = std::unordered_map<const Value*, Dims>;

std::optional<Dims> known_data(const Graph& graph, const DataMap& known, const Value* value) {
    if (value == nullptr) return std::nullopt;
    if (const Tensor* tensor = graph.constant(value)) {
        const bool integers = is_integer(tensor->dtype()) || tensor->dtype() == DType::boolean;
        if (tensor->rank() > 1 || !integers || static_cast<size_t>(tensor->size()) > kMaxShapeData)
            return std::nullopt;
        Dims data;
        for (const int64_t entry : tensor->to_ints()) data.push_back(data_entry(entry));
        return data;
    }
    const auto found = known.find(value);
    return found == known.end() ? std::nullopt : std::optional<Dims>(found->second);
}

class GraphInference : public InferContext {
  public:
    GraphInference(Graph& graph, const Node& node, DataMap& data)
        : InferContext(node), graph_(graph), data_(data) {}

    const ValueType& input(size_t index) const override { return node().input(index)->type; }

    const Tensor* constant(size_t index) const override {
        return graph_.constant(origin(node().input(index)));
    }

    std::optional<Dims> shape_data(size_t index) const override {
        return known_data(graph_, data_, origin(node().input(index)));
    }

    void set_output(size_t index, ValueType type) override {
        Value* value = node().output(index);
        if (value == nullptr) return;
        merge(*value, type);
    }

    void set_shape_data(size_t index, Dims data) override {
        const Value* value = node().output(index);
        if (value != nullptr && data.size() <= kMaxShapeData) data_[value] = std::move(data);
    }

    std::vector<ValueType> infer_subgraph(const Graph& body, const std::vector<ValueType>& inputs) override;

  private:
    // What the file declares and what the rule finds must not contradict each other; the more precise one
    // wins.
    void merge(Value& value, const ValueType& found) const {
        ValueType& known = value.type;
        if (found.dtype != DType::undefined) {
            require(known.dtype == DType::undefined || known.dtype == found.dtype,
                    "value '{}' is declared {} but computed as {}", value.name(), name(known.dtype),
                    name(found.dtype));
            known.dtype = found.dtype;
        }
        if (!found.shape) return;
        if (!known.shape || known.shape->size() != found.shape->size()) {
            require(!known.shape, "value '{}' is declared {} but computed as {}", value.name(),
                    to_string(known), to_string(*found.shape));
            known.shape = found.shape;
            return;
        }
        for (size_t axis = 0; axis < found.shape->size(); ++axis) {
            Dim& mine = (*known.shape)[axis];
            const Dim& theirs = (*found.shape)[axis];
            require(!mine.known() || !theirs.known() || mine.value == theirs.value,
                    "value '{}' is declared {} but computed as {}", value.name(), to_string(known),
                    to_string(*found.shape));
            if (!mine.known() && (theirs.known() || !theirs.symbol.empty())) mine = theirs;
        }
    }

    Graph& graph_;
    DataMap& data_;
};

void infer_graph(Graph& graph, DataMap& data) {
    graph.sort();
    for (const auto& node : graph.nodes()) {
        GraphInference context(graph, *node, data);
        infer_node(context);
    }
}

std::vector<ValueType> GraphInference::infer_subgraph(const Graph& body,
                                                      const std::vector<ValueType>& inputs) {
    // Sub-graphs belong to this node's attributes, which the graph being inferred owns.
    auto& inner = const_cast<Graph&>(body);  // NOLINT
    for (size_t i = 0; i < inputs.size() && i < inner.inputs().size(); ++i) {
        Value* value = inner.inputs()[i];
        if (value->type.dtype == DType::undefined) value->type.dtype = inputs[i].dtype;
        if (!value->type.shape) value->type.shape = inputs[i].shape;
    }
    for (Value* capture : inner.captures())
        if (capture->outer() != nullptr) capture->type = capture->outer()->type;
    infer_graph(inner, data_);
    std::vector<ValueType> types;
    for (const Graph::Output& output : inner.outputs()) types.push_back(output.value->type);
    return types;
}

}  // namespace

void NodeInference::operator()(const Node& node) {
    GraphInference context(graph_, node, data_);
    infer_node(context);
}

std::optional<Dims> NodeInference::shape_data(const Value* value) const {
    return known_data(graph_, data_, origin(value));
}

void infer_types(Graph& graph) {
    DataMap data;
    infer_graph(graph, data);
}

}  // namespace kilter
