#include "formats/onnx/graph_reader.h"

#include <protozero/pbf_writer.hpp>
#include <unordered_map>

#include "base/fail.h"
#include "formats/onnx/schema.h"
#include "formats/onnx/types.h"
#include "formats/protobuf/fields.h"

namespace kilter::onnx {

using protobuf::Fields;

namespace {

struct ValueInfo {
    std::string name, doc, foreign;
    ValueType type;
};

ValueInfo read_value_info(std::string_view message) {
    ValueInfo info;
    for (Fields fields(message); fields.next();) {
        switch (fields.number()) {
            case field::ValueInfo::name:
                info.name = fields.text();
                break;
            case field::ValueInfo::doc_string:
                info.doc = fields.text();
                break;
            case field::ValueInfo::type: {
                bool annotated = false;
                const std::string_view type = fields.view();
                info.type = read_type(type, annotated);
                // Denotations have no place in ValueType: the whole type is kept, for as long as it stays
                // true.
                if (annotated)
                    protozero::pbf_writer(info.foreign)
                        .add_message(field::ValueInfo::type, type.data(), type.size());
                break;
            }
            default:
                fields.keep(info.foreign);
        }
    }
    return info;
}

void describe_value(Value& value, ValueInfo&& info) {
    value.type = std::move(info.type);
    value.doc = std::move(info.doc);
    value.foreign = std::move(info.foreign);
}

void collect_outputs(std::string_view node, std::vector<std::string>& names) {
    for (Fields fields(node); fields.next();) {
        if (fields.number() == field::Node::output)
            names.push_back(fields.text());
        else
            fields.skip();
    }
}

std::string node_title(std::string_view message, size_t index) {
    std::string name;
    std::string op;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::Node::name)
            name = fields.text();
        else if (fields.number() == field::Node::op_type)
            op = fields.text();
        else
            fields.skip();
    }
    return name.empty() ? fmt::format("operator {} ({})", index, op)
                        : fmt::format("operator '{}' ({})", name, op);
}

// Calls `read` and puts `context` in front of the message of what it throws.
template <class Read, class Context>
void within(Context context, Read read) {
    try {
        read();
    } catch (const Error& error) {
        std::string place;
        try {
            place = context();
        } catch (const Error&) {  // too damaged to have a name
            throw error;
        }
        throw error.in(place);
    }
}

}  // namespace

std::pair<std::string, int64_t> read_opset(std::string_view message) {
    std::pair<std::string, int64_t> opset;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::OperatorSet::domain)
            opset.first = fields.text();
        else if (fields.number() == field::OperatorSet::version)
            opset.second = fields.integer();
        else
            fields.skip();
    }
    return opset;
}

std::pair<std::string, std::string> read_entry(std::string_view message) {
    std::pair<std::string, std::string> entry;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::Entry::key)
            entry.first = fields.text();
        else if (fields.number() == field::Entry::value)
            entry.second = fields.text();
        else
            fields.skip();
    }
    return entry;
}

Graph GraphReader::read_graph(std::string_view message) {
    Graph graph;
    read_graph(message, graph, nullptr);
    return graph;
}

// Names may be used before they are defined in the file: first all values are declared, then nodes are
// linked.
void GraphReader::read_graph(std::string_view message, Graph& graph, Scope* parent) {
    declare_values(message, graph);
    Scope scope{graph, parent};
    size_t index = 0;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::Graph::node)
            read_node(fields.view(), index++, scope);
        else
            fields.skip();
    }
    add_outputs(message, scope);
    graph.sort();
}

void GraphReader::declare_values(std::string_view message, Graph& graph) {
    std::unordered_map<std::string, NamedTensor> initializers;
    std::vector<std::string> initializer_order;
    std::vector<ValueInfo> inputs;
    std::vector<ValueInfo> infos;
    std::vector<std::string> computed;
    const auto add_initializer = [&](NamedTensor&& named) {
        const auto [entry, added] = initializers.try_emplace(named.name, std::move(named));
        require(added, "initializer '{}' is defined twice", entry->first);
        initializer_order.push_back(entry->first);
    };
    for (Fields fields(message); fields.next();) {
        switch (fields.number()) {
            case field::Graph::name:
                graph.name = fields.text();
                break;
            case field::Graph::doc_string:
                graph.doc = fields.text();
                break;
            case field::Graph::initializer:
                add_initializer(tensors_.read(fields.view()));
                break;
            case field::Graph::sparse_initializer:
                add_initializer(tensors_.read_sparse(fields.view()));
                break;
            case field::Graph::input:
                inputs.push_back(read_value_info(fields.view()));
                break;
            case field::Graph::value_info:
                infos.push_back(read_value_info(fields.view()));
                break;
            case field::Graph::node:
                collect_outputs(fields.view(), computed);
                break;
            case field::Graph::output:
                fields.skip();
                break;
            default:
                fields.keep(graph.foreign);
        }
    }
    const auto add_constant = [&](NamedTensor&& named) {
        require(!named.name.empty(), "an initializer has no name");
        Value* value = graph.add_constant(std::move(named.tensor), named.name);
        value->doc = std::move(named.doc);
        value->foreign = std::move(named.foreign);
        return value;
    };
    for (ValueInfo& info : inputs) {
        require(!info.name.empty(), "an input of the graph has no name");
        if (const auto entry = initializers.find(info.name); entry != initializers.end()) {
            require(!entry->second.tensor.empty(), "input '{}' is defined twice", info.name);
            add_constant(std::move(entry->second))->listed_as_input = true;
            entry->second.tensor = {};
        } else {
            Value* value = graph.add_input(info.name, {});
            describe_value(*value, std::move(info));
        }
    }
    for (const std::string& name : initializer_order)
        if (NamedTensor& named = initializers.at(name); !named.tensor.empty()) add_constant(std::move(named));
    for (const std::string& name : computed)
        if (!name.empty()) graph.add_value(name);
    for (ValueInfo& info : infos)
        if (Value* value = graph.find(info.name);
            value != nullptr && !value->is_constant() && !value->is_input())
            describe_value(*value, std::move(info));
}

Value* GraphReader::resolve(const std::string& name, Scope* scope) {
    if (scope == nullptr) return nullptr;
    if (Value* value = scope->graph.find(name)) return value;
    Value* outer = resolve(name, scope->parent);
    return outer == nullptr ? nullptr : scope->graph.add_capture(name, outer);
}

void GraphReader::add_outputs(std::string_view message, Scope& scope) {
    for (Fields fields(message); fields.next();) {
        if (fields.number() != field::Graph::output) {
            fields.skip();
            continue;
        }
        ValueInfo info = read_value_info(fields.view());
        Value* value = resolve(info.name, &scope);
        require(value != nullptr, "output '{}' is computed nowhere", info.name);
        const bool untyped =
            value->type.dtype == DType::undefined && !value->type.shape && value->type.foreign.empty();
        if (untyped && value->producer() != nullptr) value->type = info.type;
        scope.graph.add_output(
            {info.name, value, std::move(info.type), std::move(info.doc), std::move(info.foreign)});
    }
}

void GraphReader::read_node(std::string_view message, size_t index, Scope& scope) {
    within([&] { return node_title(message, index); },
           [&] {
               std::string op;
               std::string domain;
               std::vector<Value*> inputs;
               std::vector<Value*> outputs;
               Attributes attributes;
               Node rest;           // what add_node does not take
               std::string extras;  // of attributes; they come first, as the writer puts them
               for (Fields fields(message); fields.next();) {
                   switch (fields.number()) {
                       case field::Node::input: {
                           const std::string name = fields.text();
                           inputs.push_back(name.empty() ? nullptr : resolve(name, &scope));
                           require(name.empty() || inputs.back() != nullptr, "input '{}' is defined nowhere",
                                   name);
                           break;
                       }
                       case field::Node::output: {
                           const std::string name = fields.text();
                           outputs.push_back(name.empty() ? nullptr : scope.graph.find(name));
                           break;
                       }
                       case field::Node::name:
                           rest.name = fields.text();
                           break;
                       case field::Node::op_type:
                           op = fields.text();
                           break;
                       case field::Node::domain:
                           domain = fields.text();
                           break;
                       case field::Node::overload:
                           rest.overload = fields.text();
                           break;
                       case field::Node::doc_string:
                           rest.doc = fields.text();
                           break;
                       case field::Node::attribute:
                           read_attribute(fields.view(), scope, attributes, field::Node::attribute, extras);
                           break;
                       default:
                           fields.keep(rest.foreign);
                   }
               }
               require(!op.empty(), "the operator type is missing");
               Node* node = scope.graph.add_node(op, std::move(inputs), std::move(outputs),
                                                 std::move(attributes), std::move(rest.name), domain);
               node->doc = std::move(rest.doc);
               node->overload = std::move(rest.overload);
               node->foreign = extras + rest.foreign;
           });
}

Function GraphReader::read_function(std::string_view message) {
    Function function;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::vector<std::string> computed;
    std::vector<ValueInfo> infos;
    std::string extras;
    Scope scope{function.body, nullptr};
    for (Fields fields(message); fields.next();) {
        switch (fields.number()) {
            case field::Function::name:
                function.name = fields.text();
                break;
            case field::Function::domain:
                function.domain = fields.text();
                break;
            case field::Function::overload:
                function.overload = fields.text();
                break;
            case field::Function::doc_string:
                function.doc = fields.text();
                break;
            case field::Function::input:
                inputs.push_back(fields.text());
                break;
            case field::Function::output:
                outputs.push_back(fields.text());
                break;
            case field::Function::attribute:
                function.attributes.push_back(fields.text());
                break;
            case field::Function::attribute_proto:
                read_attribute(fields.view(), scope, function.defaults, field::Function::attribute_proto,
                               extras);
                break;
            case field::Function::opset_import:
                function.opsets.push_back(read_opset(fields.view()));
                break;
            case field::Function::value_info:
                infos.push_back(read_value_info(fields.view()));
                break;
            case field::Function::node:
                collect_outputs(fields.view(), computed);
                break;
            default:
                fields.keep(function.foreign);
        }
    }
    function.foreign.insert(0, extras);
    within([&] { return fmt::format("function '{}.{}'", function.domain, function.name); },
           [&] {
               function.body.name = function.name;
               for (const std::string& name : inputs) {
                   require(!name.empty(), "an input has no name");
                   function.body.add_input(name, {});
               }
               for (const std::string& name : computed)
                   if (!name.empty()) function.body.add_value(name);
               for (ValueInfo& info : infos)
                   if (Value* value = function.body.find(info.name)) describe_value(*value, std::move(info));
               size_t index = 0;
               for (Fields fields(message); fields.next();) {
                   if (fields.number() == field::Function::node)
                       read_node(fields.view(), index++, scope);
                   else
                       fields.skip();
               }
               for (const std::string& name : outputs) {
                   Value* value = function.body.find(name);
                   require(value != nullptr, "output '{}' is computed nowhere", name);
                   function.body.add_output(value);
               }
               function.body.sort();
           });
    return function;
}

}  // namespace kilter::onnx
