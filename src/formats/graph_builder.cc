#include "formats/graph_builder.h"

#include <algorithm>
#include <cstring>

#include "engine/ref/executor.h"
#include "graph/onnx_dtype.h"
#include "ops/op.h"

namespace kilter {
namespace {

// Shapes, axes and paddings: what rules want to see as numbers. Larger constants wait for the passes.
constexpr int64_t kSmall = 4096;

bool is_small_constant(const Graph& graph, const Value* value) {
    const Tensor* tensor = graph.constant(value);
    return value == nullptr || (tensor != nullptr && tensor->size() <= kSmall);
}

// Weights are transposed here rather than by the reference kernel: there are many of them.
Tensor permuted(const Tensor& tensor, const Ints& perm) {
    const size_t rank = perm.size();
    const auto width = static_cast<size_t>(bits(tensor.dtype()) / 8);
    Shape shape;
    std::vector<int64_t> strides(rank, 1);
    for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * tensor.shape()[i];
    std::vector<int64_t> steps;
    for (const int64_t axis : perm) {
        shape.push_back(tensor.shape()[static_cast<size_t>(axis)]);
        steps.push_back(strides[static_cast<size_t>(axis)]);
    }
    Tensor result(tensor.dtype(), shape);
    if (result.size() == 0) return result;
    auto* to = static_cast<char*>(result.raw_mutable());
    const auto* from = static_cast<const char*>(tensor.raw());
    std::vector<int64_t> index(rank, 0);
    const int64_t inner = shape.back();
    const int64_t step = steps.back();
    int64_t offset = 0;
    for (int64_t row = 0; row < result.size() / inner; ++row) {
        for (int64_t i = 0; i < inner; ++i, to += width)
            std::memcpy(to, from + static_cast<size_t>(offset + i * step) * width, width);
        for (size_t axis = rank - 1; axis-- > 0;) {
            offset += steps[axis];
            if (++index[axis] < shape[axis]) break;
            offset -= steps[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    return result;
}

Ints inverse_of(const Ints& perm) {
    Ints result(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) result[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    return result;
}

Ints last_to_second(int rank) {
    Ints perm{0, rank - 1};
    for (int axis = 1; axis < rank - 1; ++axis) perm.push_back(axis);
    return perm;
}

}  // namespace

Attributes attributes_of(std::initializer_list<std::pair<std::string_view, AttributeValue>> entries) {
    Attributes attributes;
    for (const auto& [name, value] : entries) attributes.set(name, value);
    return attributes;
}

void GraphBuilder::begin(std::string name) {
    name_ = std::move(name);
    made_.clear();
}

bool GraphBuilder::is_own(const Node* node) const {
    return node != nullptr && std::ranges::find(made_, node) != made_.end();
}

int GraphBuilder::rank(const Value* value) const { return static_cast<int>(dims(value).size()); }

const Dims& GraphBuilder::dims(const Value* value) const {
    if (!value->type.shape) not_lowered("the rank of '{}' is not known", value->name());
    return *value->type.shape;
}

Ints GraphBuilder::ints(const Value* value) const {
    const Tensor* tensor = constant(value);
    if (tensor != nullptr) return tensor->to_ints();
    if (const auto data = shape_data(value)) {
        Ints values;
        for (const Dim& dim : *data)
            if (dim.known()) values.push_back(dim.value);
        if (values.size() == data->size()) return values;
    }
    not_lowered("'{}' is not constant", value->name());
}

Value* GraphBuilder::emit(std::string_view op, std::vector<Value*> inputs, Attributes attributes,
                          std::string_view domain) {
    return emit_many(op, std::move(inputs), 1, std::move(attributes), domain).front();
}

std::vector<Value*> GraphBuilder::emit_many(std::string_view op, std::vector<Value*> inputs, size_t outputs,
                                            Attributes attributes, std::string_view domain) {
    std::vector<Value*> results;
    for (size_t i = 0; i < outputs; ++i) results.push_back(graph_.add_value());
    Node* made = graph_.add_node(op, std::move(inputs), results, std::move(attributes),
                                 name_ + "/" + std::string(op), domain);
    made_.push_back(made);
    infer_(*made);
    fold_small(*made);
    return results;
}

void GraphBuilder::fold_small(Node& made) {
    const OpDefinition* definition = find_op(made);
    if (definition == nullptr || definition->kernel == nullptr || !definition->deterministic) return;
    if (!made.subgraphs().empty()) return;
    for (const Value* value : made.inputs())
        if (!is_small_constant(graph_, value)) return;
    for (const Value* value : made.outputs())
        if (!value->type.is_static() || element_count(value->type.static_shape()) > kSmall) return;
    std::vector<Tensor> arguments;
    for (const Value* value : made.inputs())
        arguments.push_back(value == nullptr ? Tensor() : *graph_.constant(value));
    const std::vector<Tensor> results = ref::run_node(made, arguments);
    const std::vector<Value*> values(made.outputs().begin(), made.outputs().end());
    made_.pop_back();
    for (size_t i = 0; i < values.size(); ++i) graph_.make_constant(values[i], results[i]);
    graph_.remove_node(&made);
}

Value* GraphBuilder::cast(Value* value, DType dtype) {
    if (value->type.dtype == dtype) return value;
    if (const Tensor* tensor = constant(value); tensor != nullptr && tensor->dtype() != DType::string)
        return add_constant(tensor->converted(dtype));
    return emit("Cast", {value}, attributes_of({{"to", onnx_code(dtype)}}));
}

Value* GraphBuilder::as_int64(Value* value) {
    // A shape that was narrowed because the source's is int32 is not widened again: what it was is still there.
    const Node* producer = value->producer();
    if (producer != nullptr && producer->is("Cast") && producer->input(0)->type.dtype == DType::i64 &&
        value->type.dtype == DType::i32)
        return producer->input(0);
    Value*& known = wide_[value];
    if (known == nullptr) known = cast(value, DType::i64);
    return known;
}

Value* GraphBuilder::transpose(Value* value, const Ints& perm) {
    if (std::ranges::is_sorted(perm)) return value;
    const Node* producer = value->producer();
    if (producer != nullptr && producer->is("Transpose") &&
        producer->attributes.get_ints("perm") == inverse_of(perm))
        return producer->input(0);
    Value*& known = transposed_[{value, perm}];
    if (known != nullptr) return known;
    const Tensor* tensor = constant(value);
    if (tensor != nullptr && static_cast<size_t>(tensor->rank()) == perm.size() && bits(tensor->dtype()) >= 8)
        known = add_constant(permuted(*tensor, perm));
    else
        known = emit("Transpose", {value}, attributes_of({{"perm", perm}}));
    return known;
}

Value* GraphBuilder::channels_first(Value* value, int rank) { return transpose(value, last_to_second(rank)); }

Value* GraphBuilder::channels_last(Value* value, int rank) {
    return transpose(value, inverse_of(last_to_second(rank)));
}

}  // namespace kilter
