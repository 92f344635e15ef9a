#include "formats/onnx_samples.h"

#include <cstdlib>
#include <fstream>

#include "formats/onnx/schema.h"
#include "kilter/base/error.h"

namespace kilter::onnx::testing {

Message value_info(const std::string& name, int elem_type, const std::vector<int64_t>& dims,
                   const std::string& denotation) {
    Message shape;
    for (const int64_t dim : dims) {
        Message entry;
        if (dim >= 0)
            entry.integer(field::Dimension::dim_value, dim);
        else
            entry.text(field::Dimension::dim_param, "batch");
        shape.message(field::TensorShape::dim, entry);
    }
    Message tensor;
    tensor.integer(field::TensorType::elem_type, elem_type);
    tensor.message(field::TensorType::shape, shape);
    Message type;
    type.message(field::Type::tensor_type, tensor);
    type.text(field::Type::denotation, denotation);
    Message info;
    info.text(field::ValueInfo::name, name);
    info.message(field::ValueInfo::type, type);
    return info;
}

Message node(const std::string& op, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs, const std::vector<Message>& attributes) {
    Message message;
    for (const std::string& name : inputs) message.bytes(field::Node::input, name);
    for (const std::string& name : outputs) message.bytes(field::Node::output, name);
    message.text(field::Node::name, op + "_node");
    message.text(field::Node::op_type, op);
    for (const Message& attribute : attributes) message.message(field::Node::attribute, attribute);
    return message;
}

Message attribute_int(const std::string& name, int64_t value) {
    Message message;
    message.text(field::Attribute::name, name);
    message.integer(field::Attribute::i, value);
    message.integer(field::Attribute::type, static_cast<int64_t>(AttributeType::i));
    return message;
}

Message attribute_graph(const std::string& name, const Message& graph) {
    Message message;
    message.text(field::Attribute::name, name);
    message.message(field::Attribute::g, graph);
    message.integer(field::Attribute::type, static_cast<int64_t>(AttributeType::g));
    return message;
}

Message raw_tensor(const std::string& name, int data_type, const std::vector<int64_t>& dims,
                   const std::string& raw) {
    Message message;
    for (const int64_t dim : dims) message.integer(field::Tensor::dims, dim);
    message.integer(field::Tensor::data_type, data_type);
    message.text(field::Tensor::name, name);
    message.bytes(field::Tensor::raw_data, raw);
    return message;
}

Message graph(const GraphParts& parts, const std::string& name) {
    Message message;
    for (const Message& part : parts.nodes) message.message(field::Graph::node, part);
    message.text(field::Graph::name, name);
    for (const Message& part : parts.initializers) message.message(field::Graph::initializer, part);
    for (const Message& part : parts.inputs) message.message(field::Graph::input, part);
    for (const Message& part : parts.outputs) message.message(field::Graph::output, part);
    for (const Message& part : parts.value_infos) message.message(field::Graph::value_info, part);
    return message;
}

std::string model(const Message& graph, int64_t ir_version, int64_t opset) {
    Message message;
    message.integer(field::Model::ir_version, ir_version);
    message.text(field::Model::producer_name, "tests");
    message.message(field::Model::graph, graph);
    Message imported;
    imported.integer(field::OperatorSet::version, opset);
    message.message(field::Model::opset_import, imported);
    return message.str();
}

namespace {

// then_branch: adds a captured value; else_branch: nests another If that captures from two levels out.
Message if_node() {
    const Message output = value_info("r", 1, {2});
    const Message then_branch =
        graph({.nodes = {node("Add", {"x", "w"}, {"r"})}, .outputs = {output}}, "then");
    const Message deep =
        graph({.nodes = {node("Mul", {"x", "outer_relu"}, {"r"})}, .outputs = {output}}, "deep");
    const Message other = graph({.nodes = {node("Neg", {"x"}, {"r"})}, .outputs = {output}}, "other");
    const Message inner_if = node(
        "If", {"flag"}, {"r"}, {attribute_graph("then_branch", deep), attribute_graph("else_branch", other)});
    const Message else_branch = graph({.nodes = {inner_if}, .outputs = {output}}, "else");
    return node("If", {"flag"}, {"chosen"},
                {attribute_graph("then_branch", then_branch), attribute_graph("else_branch", else_branch)});
}

Message unknown_node() {
    Message mystery = node("Mystery", {"chosen", "", "words"}, {"m", ""}, {attribute_int("depth", 3)});
    mystery.text(field::Node::domain, "com.example");
    mystery.text(field::Node::doc_string, "nobody knows");
    mystery.text(31, "a field of the future");
    Message documented = attribute_int("documented", 4);
    documented.text(13, "doc of an attribute");
    mystery.message(field::Node::attribute, documented);
    Message typed;  // an attribute of type TYPE_PROTO
    typed.text(field::Attribute::name, "kind");
    typed.message(field::Attribute::tp, Message());
    typed.integer(field::Attribute::type, 13);
    mystery.message(field::Node::attribute, typed);
    return mystery;
}

Message function() {
    Message scaled = node("LeakyRelu", {"a"}, {"b"});
    Message reference;
    reference.text(field::Attribute::name, "alpha");
    reference.text(field::Attribute::ref_attr_name, "slope");
    reference.integer(field::Attribute::type, static_cast<int64_t>(AttributeType::f));
    scaled.message(field::Node::attribute, reference);
    Message slope;
    slope.text(field::Attribute::name, "slope");
    slope.real(field::Attribute::f, 0.5F);
    slope.integer(field::Attribute::type, static_cast<int64_t>(AttributeType::f));
    Message imported;
    imported.integer(field::OperatorSet::version, 21);
    Message message;
    message.text(field::Function::name, "Leak");
    message.text(field::Function::domain, "local");
    message.bytes(field::Function::input, "a");
    message.bytes(field::Function::output, "b");
    message.bytes(field::Function::attribute, "unused");
    message.message(field::Function::node, scaled);
    message.message(field::Function::opset_import, imported);
    message.message(field::Function::attribute_proto, slope);
    message.text(field::Function::overload, "v2");
    return message;
}

}  // namespace

std::string rich_model() {
    Message words;
    words.integer(field::Tensor::dims, 2);
    words.integer(field::Tensor::data_type, 8);
    words.text(field::Tensor::name, "words");
    words.bytes(field::Tensor::string_data, "one");
    words.bytes(field::Tensor::string_data, "");
    Message call = node("Leak", {"m"}, {"y"});
    call.text(field::Node::domain, "local");
    call.text(field::Node::overload, "v2");
    Message annotated = value_info("chosen", 1, {2});
    annotated.text(field::ValueInfo::doc_string, "doc of a value");

    Message whole = graph({
        .nodes = {node("Relu", {"x"}, {"outer_relu"}), if_node(), unknown_node(), call,
                  node("Mystery2", {"nibbles", "brain", "empty"}, {"z"})},
        .initializers = {raw_tensor("w", 1, {2}, std::string("\0\0\x80\x3F\0\0\0\x40", 8)), words,
                         raw_tensor("nibbles", 22, {3}, "\x21\x0F"), raw_tensor("brain", 16, {1}, "\x80\x3F"),
                         raw_tensor("empty", 7, {0}, "")},
        .inputs = {value_info("x", 1, {2}, "IMAGE"), value_info("flag", 9, {})},
        .outputs = {value_info("y", 1, {2}), value_info("z", 1, {-1, 3})},
        .value_infos = {annotated},
    });
    Message metadata;
    metadata.text(field::Entry::key, "stage");
    metadata.text(field::Entry::value, "graph");
    whole.message(16, metadata);
    std::string text = model(whole);
    Message rest;
    Message imported;
    imported.text(field::OperatorSet::domain, "com.example");
    imported.integer(field::OperatorSet::version, 7);
    rest.message(field::Model::opset_import, imported);
    imported = {};
    imported.text(field::OperatorSet::domain, "local");
    imported.integer(field::OperatorSet::version, 1);
    rest.message(field::Model::opset_import, imported);
    rest.message(field::Model::metadata_props, metadata);
    rest.message(field::Model::functions, function());
    rest.bytes(20, "");  // training_info
    rest.text(99, "unknown field of a model");
    return text + rest.str();
}

std::span<const std::byte> as_bytes(const std::string& text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

Model read_text(const std::string& text) { return read_bytes(as_bytes(text)); }

std::string reading_error(const std::string& text) {
    try {
        read_text(text);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

TemporaryDirectory::TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kilter-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw Error("cannot create a temporary directory");
    path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace kilter::onnx::testing
