// GraphDef and its parts, read.
#include "base/fail.h"
#include "formats/tensorflow/messages.h"
#include "formats/tensorflow/schema.h"

namespace kilter::tensorflow {
namespace {

using protobuf::Fields;

TfFunctionCall read_call(std::string_view message, const Keeper& keeper, int depth) {
    require(depth < kMaxNesting, "functions in attributes are nested more than {} deep", kMaxNesting);
    TfFunctionCall call;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::NameAttrList::name)
            call.name = fields.text();
        else if (fields.number() == field::NameAttrList::attr)
            read_attribute(fields.view(), keeper, call.attributes, depth + 1);
        else
            fields.skip();
    }
    return call;
}

TfList read_list(std::string_view message, const Keeper& keeper, int depth) {
    using F = field::ListValue;
    TfList list;
    std::vector<int64_t> numbers;
    for (Fields fields(message); fields.next();) {
        numbers.clear();
        switch (fields.number()) {
            case F::s:
                list.strings.push_back(fields.text());
                break;
            case F::i:
                fields.append_integers(list.ints);
                break;
            case F::f:
                fields.append_reals(list.floats);
                break;
            case F::b:
                fields.append_integers(numbers);
                for (const int64_t number : numbers) list.bools.push_back(number != 0);
                break;
            case F::type:
                fields.append_integers(numbers);
                for (const int64_t number : numbers) list.types.push_back({number});
                break;
            case F::shape:
                list.shapes.push_back(read_shape(fields.view()));
                break;
            case F::tensor:
                list.tensors.push_back(TfTensor::parse(fields.view(), keeper));
                break;
            case F::func:
                list.functions.push_back(read_call(fields.view(), keeper, depth));
                break;
            default:
                fields.skip();
        }
    }
    return list;
}

TfArgument read_argument(std::string_view message) {
    TfArgument argument;
    for (Fields fields(message); fields.next();) {
        switch (fields.number()) {
            case field::ArgDef::name:
                argument.name = fields.text();
                break;
            case field::ArgDef::type:
                argument.type = {fields.integer()};
                break;
            case field::ArgDef::type_attr:
                argument.type_attr = fields.text();
                break;
            case field::ArgDef::number_attr:
                argument.number_attr = fields.text();
                break;
            case field::ArgDef::type_list_attr:
                argument.type_list_attr = fields.text();
                break;
            default:
                fields.skip();
        }
    }
    return argument;
}

void read_signature(std::string_view message, TfFunction& function) {
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::OpDef::name)
            function.name = fields.text();
        else if (fields.number() == field::OpDef::input_arg)
            function.inputs.push_back(read_argument(fields.view()));
        else if (fields.number() == field::OpDef::output_arg)
            function.outputs.push_back(read_argument(fields.view()));
        else
            fields.skip();
    }
}

void read_library(std::string_view message, const Keeper& keeper, TfGraph& graph) {
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::Library::function)
            graph.functions.push_back(read_function(fields.view(), keeper));
        else
            fields.keep(graph.library_foreign);
    }
}

void read_versions(std::string_view message, TfGraph& graph) {
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::Versions::producer)
            graph.producer_version = fields.integer();
        else if (fields.number() == field::Versions::min_consumer)
            graph.min_consumer = fields.integer();
        else if (fields.number() == field::Versions::bad_consumers)
            fields.append_integers(graph.bad_consumers);
        else
            fields.skip();
    }
}

}  // namespace

TfShape read_shape(std::string_view message) {
    std::vector<int64_t> dims;
    std::vector<std::string> names;
    bool unknown = false;
    bool named = false;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::TensorShape::unknown_rank) {
            unknown = fields.integer() != 0;
        } else if (fields.number() == field::TensorShape::dim) {
            int64_t size = 0;
            std::string name;
            for (Fields dim(fields.view()); dim.next();) {
                if (dim.number() == field::Dimension::size)
                    size = dim.integer();
                else if (dim.number() == field::Dimension::name)
                    name = dim.text();
                else
                    dim.skip();
            }
            named |= !name.empty();
            dims.push_back(size);
            names.push_back(std::move(name));
        } else {
            fields.skip();
        }
    }
    TfShape shape;
    if (unknown) return shape;
    shape.dims = std::move(dims);
    if (named) shape.names = std::move(names);
    return shape;
}

TfValue read_value(std::string_view message, const Keeper& keeper, int depth) {
    using F = field::AttrValue;
    TfValue value;
    for (Fields fields(message); fields.next();) {
        switch (fields.number()) {
            case F::list:
                value = std::make_shared<const TfList>(read_list(fields.view(), keeper, depth));
                break;
            case F::s:
                value = fields.text();
                break;
            case F::i:
                value = fields.integer();
                break;
            case F::f:
                value = fields.real();
                break;
            case F::b:
                value = fields.integer() != 0;
                break;
            case F::type:
                value = TfType{fields.integer()};
                break;
            case F::shape:
                value = read_shape(fields.view());
                break;
            case F::tensor:
                value = TfTensor::parse(fields.view(), keeper);
                break;
            case F::placeholder:
                value = TfPlaceholder{fields.text()};
                break;
            case F::func:
                value = std::make_shared<const TfFunctionCall>(read_call(fields.view(), keeper, depth));
                break;
            default:
                return TfForeign{std::string(message)};
        }
    }
    return value;
}

void read_attribute(std::string_view message, const Keeper& keeper, TfAttributes& attributes, int depth) {
    std::string name;
    std::string_view value;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::Entry::key)
            name = fields.text();
        else if (fields.number() == field::Entry::value)
            value = fields.view();
        else
            fields.skip();
    }
    try {
        require(!attributes.has(name), "is given twice");
        attributes.set(name, read_value(value, keeper, depth));
    } catch (const Error& error) {
        throw error.in(fmt::format("attribute '{}'", name));
    }
}

TfNode read_node(std::string_view message, const Keeper& keeper) {
    TfNode node;
    try {
        for (Fields fields(message); fields.next();) {
            switch (fields.number()) {
                case field::NodeDef::name:
                    node.name = fields.text();
                    break;
                case field::NodeDef::op:
                    node.op = fields.text();
                    break;
                case field::NodeDef::input:
                    node.inputs.emplace_back(fields.view());
                    break;
                case field::NodeDef::device:
                    node.device = fields.text();
                    break;
                case field::NodeDef::attr:
                    read_attribute(fields.view(), keeper, node.attributes);
                    break;
                default:
                    fields.keep(node.foreign);
            }
        }
    } catch (const Error& error) {
        if (node.name.empty()) throw;
        throw error.in(describe(node));
    }
    return node;
}

TfFunction read_function(std::string_view message, const Keeper& keeper) {
    TfFunction function;
    function.source = {message, keeper};
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::FunctionDef::signature) {
            read_signature(fields.view(), function);
        } else if (fields.number() == field::FunctionDef::node_def) {
            function.nodes.push_back(read_node(fields.view(), keeper));
        } else if (fields.number() == field::FunctionDef::ret) {
            std::pair<std::string, std::string> entry;
            for (Fields parts(fields.view()); parts.next();) {
                if (parts.number() == field::Entry::key)
                    entry.first = parts.text();
                else if (parts.number() == field::Entry::value)
                    entry.second = parts.text();
                else
                    parts.skip();
            }
            function.returns.push_back(std::move(entry));
        } else {
            fields.skip();
        }
    }
    return function;
}

TfGraph read_graph(std::string_view message, const Keeper& keeper) {
    TfGraph graph;
    for (Fields fields(message); fields.next();) {
        switch (fields.number()) {
            case field::GraphDef::node:
                graph.add(read_node(fields.view(), keeper));
                break;
            case field::GraphDef::library:
                graph.has_library = true;
                read_library(fields.view(), keeper, graph);
                break;
            case field::GraphDef::versions:
                read_versions(fields.view(), graph);
                break;
            default:
                fields.keep(graph.foreign);
        }
    }
    return graph;
}

}  // namespace kilter::tensorflow
