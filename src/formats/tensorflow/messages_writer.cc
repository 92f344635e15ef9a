// GraphDef and its parts, written. Field order and defaults are those of protobuf's own writer.
#include "formats/tensorflow/messages.h"
#include "formats/tensorflow/schema.h"

namespace kilter::tensorflow {
namespace {

using protobuf::Message;

Message write_entry(const std::string& name, const TfValue& value) {
    Message entry;
    entry.bytes(field::Entry::key, name);
    entry.message(field::Entry::value, write_value(value));
    return entry;
}

Message write_call(const TfFunctionCall& call) {
    Message message;
    message.text(field::NameAttrList::name, call.name);
    for (const auto& [name, value] : call.attributes)
        message.message(field::NameAttrList::attr, write_entry(name, value));
    return message;
}

// Repeated numbers are packed: one run of bytes.
template <class Numbers, class Code>
void write_packed(Message& message, uint32_t number, const Numbers& numbers, Code code) {
    if (numbers.empty()) return;
    Message run;
    for (const auto& each : numbers) run.varint(code(each));
    message.message(number, run);
}

Message write_list(const TfList& list) {
    using F = field::ListValue;
    Message message;
    for (const std::string& text : list.strings) message.bytes(F::s, text);
    write_packed(message, F::i, list.ints, [](int64_t number) { return number; });
    if (!list.floats.empty())
        message.bytes(
            F::f, {reinterpret_cast<const char*>(list.floats.data()), list.floats.size() * sizeof(float)});
    write_packed(message, F::b, list.bools, [](bool flag) { return int64_t{flag}; });
    write_packed(message, F::type, list.types, [](TfType type) { return type.code; });
    for (const TfShape& shape : list.shapes) message.message(F::shape, write_shape(shape));
    for (const TfTensor& tensor : list.tensors) tensor.write(message, F::tensor);
    for (const TfFunctionCall& call : list.functions) message.message(F::func, write_call(call));
    return message;
}

struct ValueWriter {
    using F = field::AttrValue;
    Message& message;

    void operator()(std::monostate) const {}
    void operator()(const std::string& text) const { message.bytes(F::s, text); }
    void operator()(int64_t number) const { message.integer(F::i, number); }
    void operator()(float number) const { message.real(F::f, number); }
    void operator()(bool flag) const { message.integer(F::b, flag ? 1 : 0); }
    void operator()(TfType type) const { message.integer(F::type, type.code); }
    void operator()(const TfShape& shape) const { message.message(F::shape, write_shape(shape)); }
    void operator()(const TfTensor& tensor) const { tensor.write(message, F::tensor); }
    void operator()(const TfPlaceholder& placeholder) const {
        message.bytes(F::placeholder, placeholder.name);
    }
    void operator()(const TfForeign& foreign) const { message.verbatim(foreign.bytes); }
    void operator()(const std::shared_ptr<const TfFunctionCall>& call) const {
        message.message(F::func, write_call(*call));
    }
    void operator()(const std::shared_ptr<const TfList>& list) const {
        message.message(F::list, write_list(*list));
    }
};

}  // namespace

Message write_shape(const TfShape& shape) {
    Message message;
    if (!shape.dims) {
        message.integer(field::TensorShape::unknown_rank, 1);
        return message;
    }
    for (size_t i = 0; i < shape.dims->size(); ++i) {
        Message dim;
        if ((*shape.dims)[i] != 0) dim.integer(field::Dimension::size, (*shape.dims)[i]);
        if (i < shape.names.size()) dim.text(field::Dimension::name, shape.names[i]);
        message.message(field::TensorShape::dim, dim);
    }
    return message;
}

Message write_value(const TfValue& value) {
    Message message;
    std::visit(ValueWriter{message}, value);
    return message;
}

Message write_node(const TfNode& node) {
    Message message;
    message.text(field::NodeDef::name, node.name);
    message.text(field::NodeDef::op, node.op);
    for (const TfInput& input : node.inputs) message.bytes(field::NodeDef::input, input.text());
    message.text(field::NodeDef::device, node.device);
    for (const auto& [name, value] : node.attributes)
        message.message(field::NodeDef::attr, write_entry(name, value));
    message.verbatim(node.foreign);
    return message;
}

Message write_graph(const TfGraph& graph) {
    Message message;
    for (const auto& node : graph.nodes()) message.message(field::GraphDef::node, write_node(*node));
    if (graph.has_library || !graph.functions.empty()) {
        Message library;
        for (const TfFunction& function : graph.functions)
            library.blob(field::Library::function, function.source.view.data(), function.source.view.size());
        library.verbatim(graph.library_foreign);
        message.message(field::GraphDef::library, library);
    }
    Message versions;
    if (graph.producer_version != 0) versions.integer(field::Versions::producer, graph.producer_version);
    if (graph.min_consumer != 0) versions.integer(field::Versions::min_consumer, graph.min_consumer);
    write_packed(versions, field::Versions::bad_consumers, graph.bad_consumers,
                 [](int64_t number) { return number; });
    if (versions.size() > 0) message.message(field::GraphDef::versions, versions);
    message.verbatim(graph.foreign);
    return message;
}

}  // namespace kilter::tensorflow
