// The readable form of a graph: one line per operator, sub-graphs indented below the operator that owns them.
#include <fmt/format.h>

#include "base/convert.h"
#include "base/fail.h"
#include "kilter/graph/graph.h"

namespace kilter {
namespace {

constexpr size_t kLongestList = 8;
constexpr int64_t kLargestInlineConstant = 4;

template <class List>
std::string list_text(const List& list) {
    const size_t shown = std::min(list.size(), kLongestList);
    std::string text = "[";
    for (size_t i = 0; i < shown; ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", list[i]);
    return text + (shown < list.size() ? fmt::format(", … {} in all]", list.size()) : "]");
}

std::string number_text(const Tensor& tensor, int64_t index) {
    if (tensor.dtype() == DType::boolean)
        return load_int(tensor.dtype(), tensor.raw(), index) != 0 ? "true" : "false";
    if (is_integer(tensor.dtype())) return fmt::format("{}", load_int(tensor.dtype(), tensor.raw(), index));
    return fmt::format("{:.6g}", load_double(tensor.dtype(), tensor.raw(), index));
}

// Small tensors of numbers show their elements, others their type.
std::string tensor_text(const Tensor& tensor) {
    const bool printable = tensor.dtype() != DType::string && tensor.dtype() != DType::complex64 &&
                           tensor.dtype() != DType::complex128;
    if (!printable || tensor.rank() > 1 || tensor.size() > kLargestInlineConstant)
        return to_string(ValueType::of(tensor));
    std::vector<std::string> numbers;
    for (int64_t i = 0; i < tensor.size(); ++i) numbers.push_back(number_text(tensor, i));
    return tensor.rank() == 0 ? numbers[0] : list_text(numbers);
}

std::string attribute_text(const AttributeValue& value) {
    struct Text {
        std::string operator()(int64_t number) const { return fmt::format("{}", number); }
        std::string operator()(float number) const { return fmt::format("{:.6g}", number); }
        std::string operator()(const std::string& text) const { return fmt::format("'{}'", text); }
        std::string operator()(const Tensor& tensor) const { return tensor_text(tensor); }
        std::string operator()(const std::shared_ptr<Graph>& /*body*/) const { return "below"; }
        std::string operator()(const std::vector<int64_t>& list) const { return list_text(list); }
        std::string operator()(const std::vector<float>& list) const { return list_text(list); }
        std::string operator()(const std::vector<std::string>& list) const { return list_text(list); }
        std::string operator()(const std::vector<Tensor>& list) const {
            return fmt::format("{} tensors", list.size());
        }
        std::string operator()(const std::vector<std::shared_ptr<Graph>>& /*bodies*/) const {
            return "below";
        }
        std::string operator()(const AttributeReference& reference) const { return "@" + reference.name; }
        std::string operator()(const ForeignAttribute& /*foreign*/) const { return "…"; }
    };
    return std::visit(Text(), value);
}

std::string typed_name(const std::string& name, const ValueType& type) {
    const bool unknown = type.dtype == DType::undefined && !type.shape && type.foreign.empty();
    return unknown ? name : name + ": " + to_string(type);
}

std::string argument_text(const Graph& graph, const Value* value) {
    if (value == nullptr) return "-";
    const Tensor* constant = graph.constant(value);
    if (constant == nullptr) return value->name();
    const std::string text = tensor_text(*constant);
    return constant->rank() <= 1 && constant->size() <= kLargestInlineConstant ? text
                                                                               : value->name() + ": " + text;
}

using Words = std::vector<std::string>;

std::string node_line(const Graph& graph, const Node& node) {
    Words outputs;
    for (const Value* output : node.outputs())
        outputs.push_back(output == nullptr ? "-" : typed_name(output->name(), output->type));
    Words inputs;
    for (const Value* input : node.inputs()) inputs.push_back(argument_text(graph, input));
    Words attributes;
    for (const auto& [name, value] : node.attributes)
        attributes.push_back(fmt::format("{}={}", name, attribute_text(value)));
    return fmt::format("{} = {}{}{}({}){}{}", fmt::join(outputs, ", "), node.domain(),
                       node.domain().empty() ? "" : ".", node.op(), fmt::join(inputs, ", "),
                       attributes.empty() ? "" : fmt::format(" {{{}}}", fmt::join(attributes, ", ")),
                       node.name.empty() ? "" : "  # " + node.name);
}

std::string output_text(const Graph::Output& output) {
    if (output.value == nullptr) return output.name;
    const bool renamed = output.value->name() != output.name;
    return typed_name(renamed ? fmt::format("{} = {}", output.name, output.value->name()) : output.name,
                      output.value->type);
}

void print_graph(const Graph& graph, const std::string& title, const std::string& indent, std::string& text) {
    Words inputs;
    for (const Value* input : graph.inputs()) inputs.push_back(typed_name(input->name(), input->type));
    Words outputs;
    for (const Graph::Output& output : graph.outputs()) outputs.push_back(output_text(output));
    text +=
        fmt::format("{}{}({}) -> ({})\n", indent, title, fmt::join(inputs, ", "), fmt::join(outputs, ", "));
    for (const auto& node : graph.nodes()) {
        text += fmt::format("{}  {}\n", indent, node_line(graph, *node));
        for (const auto& [name, value] : node->attributes) {
            if (const auto* body = std::get_if<std::shared_ptr<Graph>>(&value))
                print_graph(**body, name, indent + "    ", text);
            if (const auto* bodies = std::get_if<std::vector<std::shared_ptr<Graph>>>(&value))
                for (const auto& body : *bodies) print_graph(*body, name, indent + "    ", text);
        }
    }
}

}  // namespace

std::string print(const Graph& graph) {
    std::string text;
    print_graph(graph, graph.name.empty() ? "graph" : "graph " + graph.name, "", text);
    return text;
}

}  // namespace kilter
