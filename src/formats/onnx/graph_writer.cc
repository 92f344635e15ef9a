#include "formats/onnx/graph_writer.h"

#include <algorithm>
#include <unordered_set>

#include "formats/onnx/schema.h"
#include "formats/onnx/types.h"
#include "formats/protobuf/fields.h"

namespace kilter::onnx {

using protobuf::Fields;

namespace {

Message write_value_info(const std::string& name, const ValueType& type, const std::string& doc,
                         const std::string& foreign) {
    Message message;
    message.bytes(field::ValueInfo::name, name);
    const std::string own = write_type(type);
    bool type_written = false;
    std::string rest;
    for (Fields fields(foreign); fields.next();) {
        if (fields.number() != field::ValueInfo::type) {
            fields.keep(rest);
            continue;
        }
        // The source's type with its denotations, unless the type has changed since.
        bool annotated = false;
        const std::string_view source = fields.view();
        if (write_type(read_type(source, annotated)) != own) continue;
        message.bytes(field::ValueInfo::type, source);
        type_written = true;
    }
    if (!type_written && !own.empty()) message.bytes(field::ValueInfo::type, own);
    message.text(field::ValueInfo::doc_string, doc);
    message.verbatim(rest);
    return message;
}

// Runtimes refuse a shape without an element type, and a value between two operators needs no entry at all.
bool is_worth_writing(const Value& value) {
    const bool typed = value.type.dtype != DType::undefined || !value.type.foreign.empty();
    if (!is_element(value.type.dtype) && value.type.foreign.empty()) return false;
    return typed || (!value.type.shape && (!value.doc.empty() || !value.foreign.empty()));
}

// Foreign parts of a node or function; those that belong to an attribute (see read_attribute) are set apart.
struct ForeignParts {
    std::string own;
    std::vector<std::pair<std::string, std::string>> of_attributes;

    ForeignParts(const std::string& foreign, uint32_t attribute_field) {
        for (Fields fields(foreign); fields.next();) {
            if (fields.number() != attribute_field) {
                fields.keep(own);
                continue;
            }
            auto& [name, extras] = of_attributes.emplace_back();
            for (Fields attribute(fields.view()); attribute.next();) {
                if (attribute.number() == field::Attribute::name)
                    name = attribute.text();
                else
                    attribute.keep(extras);
            }
        }
    }

    void append_to(Message& message, const std::string& attribute) const {
        for (const auto& [name, extras] : of_attributes)
            if (name == attribute) message.verbatim(extras);
    }
};

}  // namespace

Message write_opset(const std::string& domain, int64_t version) {
    Message message;
    message.bytes(field::OperatorSet::domain, domain);
    message.integer(field::OperatorSet::version, version);
    return message;
}

Message GraphWriter::write_graph(const Graph& graph, const Names* outer) const {
    const Names names(graph, outer);
    Message message;
    for (const auto& node : graph.nodes()) message.message(field::Graph::node, write_node(*node, names));
    for (const auto& [value, name] : names.copies()) {
        Message copy;
        copy.bytes(field::Node::input, names(value));
        copy.bytes(field::Node::output, name);
        copy.text(field::Node::op_type, "Identity");
        message.message(field::Graph::node, copy);
    }
    message.text(field::Graph::name, graph.name);

    const std::vector<Value*> constants = graph.constants();
    for (const Value* value : constants) {
        Message tensor = write_tensor(*graph.constant(value), names(value), external_);
        tensor.text(field::Tensor::doc_string, value->doc);
        tensor.verbatim(value->foreign);
        message.message(field::Graph::initializer, tensor);
    }
    message.text(field::Graph::doc_string, graph.doc);

    // Constants that are listed as inputs take the place their ids give them: the order of the source.
    auto listed = constants.begin();
    const auto list_constants_before = [&](int id) {
        for (; listed != constants.end() && (*listed)->id() < id; ++listed)
            if ((*listed)->listed_as_input || (list_constants_ && outer == nullptr))
                message.message(field::Graph::input,
                                write_value_info(names(*listed), (*listed)->type, {}, {}));
    };
    for (const Value* input : graph.inputs()) {
        list_constants_before(input->id());
        message.message(field::Graph::input,
                        write_value_info(names(input), input->type, input->doc, input->foreign));
    }
    list_constants_before(graph.value_limit());

    std::unordered_set<std::string> outputs(names.outputs().begin(), names.outputs().end());
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
        const Graph::Output& output = graph.outputs()[i];
        message.message(field::Graph::output,
                        write_value_info(names.outputs()[i], output.type, output.doc, output.foreign));
    }
    for (const Value* value : graph.values()) {
        if (value->producer() == nullptr || outputs.contains(names(value))) continue;
        if (!is_worth_writing(*value)) continue;
        message.message(field::Graph::value_info,
                        write_value_info(names(value), value->type, value->doc, value->foreign));
    }
    message.verbatim(graph.foreign);
    return message;
}

Message GraphWriter::write_function(const Function& function) const {
    const Graph& body = function.body;
    const Names names(body, nullptr);
    const ForeignParts foreign(function.foreign, field::Function::attribute_proto);
    Message message;
    message.text(field::Function::name, function.name);
    for (const Value* input : body.inputs()) message.bytes(field::Function::input, names(input));
    for (const std::string& name : names.outputs()) message.bytes(field::Function::output, name);
    for (const std::string& name : function.attributes) message.bytes(field::Function::attribute, name);
    // Functions have no initializers: constants become operators.
    for (const Value* value : body.constants()) {
        Message tensor;
        tensor.text(field::Attribute::name, "value");
        tensor.message(field::Attribute::t, write_tensor(*body.constant(value), {}, attribute_data()));
        tensor.integer(field::Attribute::type, static_cast<int64_t>(AttributeType::t));
        Message node;
        node.bytes(field::Node::output, names(value));
        node.text(field::Node::op_type, "Constant");
        node.message(field::Node::attribute, tensor);
        message.message(field::Function::node, node);
    }
    for (const auto& node : body.nodes()) message.message(field::Function::node, write_node(*node, names));
    for (const auto& [value, name] : names.copies()) {
        Message copy;
        copy.bytes(field::Node::input, names(value));
        copy.bytes(field::Node::output, name);
        copy.text(field::Node::op_type, "Identity");
        message.message(field::Function::node, copy);
    }
    message.text(field::Function::doc_string, function.doc);
    for (const auto& [domain, version] : function.opsets)
        message.message(field::Function::opset_import, write_opset(domain, version));
    message.text(field::Function::domain, function.domain);
    for (const auto& [name, value] : function.defaults) {
        Message attribute = write_attribute(name, value, names);
        foreign.append_to(attribute, name);
        message.message(field::Function::attribute_proto, attribute);
    }
    for (const Value* value : body.values())
        if (!value->is_constant() && is_worth_writing(*value))
            message.message(field::Function::value_info,
                            write_value_info(names(value), value->type, value->doc, value->foreign));
    message.text(field::Function::overload, function.overload);
    message.verbatim(foreign.own);
    return message;
}

Message GraphWriter::write_node(const Node& node, const Names& names) const {
    const ForeignParts foreign(node.foreign, field::Node::attribute);
    Message message;
    for (const Value* input : node.inputs()) message.bytes(field::Node::input, names(input));
    for (const Value* output : node.outputs()) message.bytes(field::Node::output, names(output));
    message.text(field::Node::name, node.name);
    message.text(field::Node::op_type, node.op());
    for (const auto& [name, value] : node.attributes) {
        Message attribute = write_attribute(name, value, names);
        foreign.append_to(attribute, name);
        message.message(field::Node::attribute, attribute);
    }
    message.text(field::Node::doc_string, node.doc);
    message.text(field::Node::domain, node.domain());
    message.text(field::Node::overload, node.overload);
    message.verbatim(foreign.own);
    return message;
}

Message GraphWriter::write_attribute(const std::string& name, const AttributeValue& value,
                                     const Names& names) const {
    using F = field::Attribute;
    Message message;
    if (const auto* foreign = std::get_if<ForeignAttribute>(&value)) {
        message.verbatim(foreign->bytes);
        return message;
    }
    message.text(F::name, name);
    AttributeType type = AttributeType::undefined;
    if (const auto* number = std::get_if<float>(&value)) {
        message.real(F::f, *number);
        type = AttributeType::f;
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
        message.integer(F::i, *integer);
        type = AttributeType::i;
    } else if (const auto* text = std::get_if<std::string>(&value)) {
        message.bytes(F::s, *text);
        type = AttributeType::s;
    } else if (const auto* tensor = std::get_if<Tensor>(&value)) {
        message.message(F::t, write_tensor(*tensor, {}, attribute_data()));
        type = AttributeType::t;
    } else if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&value)) {
        message.message(F::g, write_graph(**graph, &names));
        type = AttributeType::g;
    } else if (const auto* reals = std::get_if<std::vector<float>>(&value)) {
        for (const float entry : *reals) message.real(F::floats, entry);
        type = AttributeType::floats;
    } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
        for (const int64_t entry : *integers) message.integer(F::ints, entry);
        type = AttributeType::ints;
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
        for (const std::string& entry : *texts) message.bytes(F::strings, entry);
        type = AttributeType::strings;
    } else if (const auto* tensors = std::get_if<std::vector<Tensor>>(&value)) {
        for (const Tensor& entry : *tensors)
            message.message(F::tensors, write_tensor(entry, {}, attribute_data()));
        type = AttributeType::tensors;
    } else if (const auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&value)) {
        for (const auto& entry : *graphs) message.message(F::graphs, write_graph(*entry, &names));
        type = AttributeType::graphs;
    } else if (const auto* reference = std::get_if<AttributeReference>(&value)) {
        message.text(F::ref_attr_name, reference->name);
        type = static_cast<AttributeType>(reference->type);
    }
    message.integer(F::type, static_cast<int64_t>(type));
    return message;
}

}  // namespace kilter::onnx
