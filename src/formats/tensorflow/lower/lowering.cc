#include "formats/tensorflow/lower/lowering.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "engine/ref/executor.h"
#include "formats/tensorflow/lower.h"
#include "graph/onnx_dtype.h"
#include "ops/op.h"

namespace kilter::tensorflow {
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

std::unordered_map<std::string_view, LowerFunction> all_rules() {
    std::unordered_map<std::string_view, LowerFunction> rules;
    for (const auto family :
         {convolution_rules(), elementwise_rules(), flow_rules(), indexing_rules(), normalization_rules(),
          pooling_rules(), product_rules(), reduction_rules(), resize_rules(), shape_rules(), space_rules()})
        for (const LowerRule& rule : family) rules.emplace(rule.op, rule.lower);
    return rules;
}

}  // namespace

Attributes attributes_of(std::initializer_list<std::pair<std::string_view, AttributeValue>> entries) {
    Attributes attributes;
    for (const auto& [name, value] : entries) attributes.set(name, value);
    return attributes;
}

LowerFunction find_rule(std::string_view op) {
    static const auto rules = all_rules();
    const auto found = rules.find(op);
    return found == rules.end() ? nullptr : found->second;
}

Value* Lowering::find(const TfInput& input) const {
    const auto found = values_.find({input.node, input.port});
    return found == values_.end() ? nullptr : found->second;
}

void Lowering::define(const TfInput& output, Value* value) { values_[{output.node, output.port}] = value; }

void Lowering::lower(const TfNode& node, int ports) {
    node_ = &node;
    inputs_.clear();
    outputs_.clear();
    made_.clear();
    main_ = nullptr;
    main_name_ = node.name;
    ports_ = ports;
    bool complete = true;
    for (const TfInput& input : node.inputs) {
        if (input.control) continue;
        inputs_.push_back(find(input));
        complete = complete && inputs_.back() != nullptr;
    }
    const LowerFunction rule = find_rule(node.op);
    if (rule == nullptr || !complete) {
        make_opaque(rule == nullptr ? "kilter has no such operator" : "an input comes from a loop");
    } else {
        try {
            rule(*this);
            for (int port = 0; port < ports; ++port)
                if (static_cast<size_t>(port) >= outputs_.size() ||
                    outputs_[static_cast<size_t>(port)] == nullptr)
                    not_lowered("output {} is read, which kilter does not compute", port);
        } catch (const Error& error) {
            outputs_.clear();
            made_.clear();
            main_ = nullptr;
            main_name_ = node.name;
            make_opaque(error.what());
        }
    }
    for (size_t port = 0; port < outputs_.size(); ++port) {
        if (outputs_[port] == nullptr) continue;
        const TfInput output = TfInput::of(node.name, static_cast<int>(port));
        if (find(output) != nullptr) continue;
        Node* producer = outputs_[port]->producer();
        const bool own = producer != nullptr && std::ranges::find(made_, producer) != made_.end();
        if (port == 0 && own && main_ == nullptr) main_ = producer;
        const bool nameable = (own || outputs_[port]->is_constant()) && graph_.find(output.text()) == nullptr;
        if (nameable && named_.insert(outputs_[port]).second) graph_.rename(outputs_[port], output.text());
        define(output, outputs_[port]);
    }
    if (main_ != nullptr) main_->name = main_name_;
}

void Lowering::make_opaque(const std::string& reason) {
    std::vector<Value*> results;
    for (int port = 0; port < std::max(ports_, 1); ++port) results.push_back(graph_.add_value());
    Node* made = graph_.add_node(node_->op, inputs_, results, {}, node_->name, kOpaqueDomain);
    made->doc = reason;
    made_ = {made};
    main_ = made;
    outputs_ = results;
    // Where the element type is told, what follows is easier with it.
    const auto* type = attributes().has("dtype") ? std::get_if<TfType>(attributes().find("dtype")) : nullptr;
    if (type != nullptr && results.size() == 1) results[0]->type.dtype = type->dtype();
}

Value* Lowering::input(size_t index) const {
    if (index >= inputs_.size()) not_lowered("input {} is missing", index);
    return inputs_[index];
}

DType Lowering::dtype(std::string_view attribute) const {
    const TfType type = attributes().get_type(attribute);
    if (type.dtype() == DType::undefined) not_lowered("elements of {}", to_string(type));
    return type.dtype();
}

int Lowering::rank(const Value* value) const { return static_cast<int>(dims(value).size()); }

const Dims& Lowering::dims(const Value* value) const {
    if (!value->type.shape) not_lowered("the rank of '{}' is not known", value->name());
    return *value->type.shape;
}

Ints Lowering::ints(size_t index) const {
    const Tensor* tensor = constant(input(index));
    if (tensor != nullptr) return tensor->to_ints();
    if (const auto data = shape_data(input(index))) {
        Ints values;
        for (const Dim& dim : *data)
            if (dim.known()) values.push_back(dim.value);
        if (values.size() == data->size()) return values;
    }
    not_lowered("input {} is not constant", index);
}

Value* Lowering::emit(std::string_view op, std::vector<Value*> inputs, Attributes attributes) {
    return emit_many(op, std::move(inputs), 1, std::move(attributes)).front();
}

std::vector<Value*> Lowering::emit_many(std::string_view op, std::vector<Value*> inputs, size_t outputs,
                                        Attributes attributes) {
    std::vector<Value*> results;
    for (size_t i = 0; i < outputs; ++i) results.push_back(graph_.add_value());
    Node* made = graph_.add_node(op, std::move(inputs), results, std::move(attributes),
                                 node_->name + "/" + std::string(op));
    made_.push_back(made);
    infer_(*made);
    fold_small(*made);
    return results;
}

void Lowering::fold_small(Node& made) {
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

Value* Lowering::add_constant(Tensor tensor) { return graph_.add_constant(std::move(tensor)); }

Value* Lowering::cast(Value* value, DType dtype) {
    if (value->type.dtype == dtype) return value;
    if (const Tensor* tensor = constant(value); tensor != nullptr && tensor->dtype() != DType::string)
        return add_constant(tensor->converted(dtype));
    return emit("Cast", {value}, attributes_of({{"to", onnx_code(dtype)}}));
}

Value* Lowering::as_int64(Value* value) {
    // A shape that was narrowed because TensorFlow's is int32 is not widened again: what it was is still there.
    const Node* producer = value->producer();
    if (producer != nullptr && producer->is("Cast") && producer->input(0)->type.dtype == DType::i64 &&
        value->type.dtype == DType::i32)
        return producer->input(0);
    Value*& known = wide_[value];
    if (known == nullptr) known = cast(value, DType::i64);
    return known;
}

Value* Lowering::as_index(Value* value, std::string_view attribute) {
    return cast(value, attributes().get_type(attribute, kInt32).dtype());
}

Value* Lowering::transpose(Value* value, const Ints& perm) {
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

Value* Lowering::channels_first(Value* value, int rank) { return transpose(value, last_to_second(rank)); }

Value* Lowering::channels_last(Value* value, int rank) {
    return transpose(value, inverse_of(last_to_second(rank)));
}

Value* Lowering::reshape(Value* value, const Ints& shape) {
    return emit("Reshape", {value, add_ints(shape)});
}

Value* Lowering::unsqueeze(Value* value, const Ints& axes) {
    return emit("Unsqueeze", {value, add_ints(axes)});
}

void Lowering::name_main(Value* value, std::string_view name) {
    Node* producer = value->producer();
    if (producer == nullptr || std::ranges::find(made_, producer) == made_.end()) return;
    main_ = producer;
    if (!name.empty()) main_name_ = name;
}

void Lowering::result(Value* value, int port) {
    if (outputs_.size() <= static_cast<size_t>(port)) outputs_.resize(static_cast<size_t>(port) + 1, nullptr);
    outputs_[static_cast<size_t>(port)] = value;
}

bool is_channels_last(const Lowering& lowering) {
    const std::string format = lowering.attributes().get_string("data_format", "NHWC");
    if (format == "NHWC" || format == "NDHWC" || format == "NWC") return true;
    if (format == "NCHW" || format == "NCDHW" || format == "NCW") return false;
    not_lowered("data_format {}", format);
}

}  // namespace kilter::tensorflow
