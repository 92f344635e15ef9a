// AttributeProto to AttributeValue.
#include <protozero/pbf_writer.hpp>

#include "base/fail.h"
#include "formats/onnx/graph_reader.h"
#include "formats/onnx/schema.h"
#include "formats/protobuf/fields.h"

namespace kilter::onnx {

using protobuf::Fields;

namespace {

// Files of IR version 1 and 2 may leave out the type: it is that of the field that is set.
int64_t derived_type(uint32_t number) {
    switch (number) {
        case field::Attribute::f:
            return static_cast<int64_t>(AttributeType::f);
        case field::Attribute::i:
            return static_cast<int64_t>(AttributeType::i);
        case field::Attribute::s:
            return static_cast<int64_t>(AttributeType::s);
        case field::Attribute::t:
            return static_cast<int64_t>(AttributeType::t);
        case field::Attribute::g:
            return static_cast<int64_t>(AttributeType::g);
        case field::Attribute::floats:
            return static_cast<int64_t>(AttributeType::floats);
        case field::Attribute::ints:
            return static_cast<int64_t>(AttributeType::ints);
        case field::Attribute::strings:
            return static_cast<int64_t>(AttributeType::strings);
        case field::Attribute::tensors:
            return static_cast<int64_t>(AttributeType::tensors);
        case field::Attribute::graphs:
            return static_cast<int64_t>(AttributeType::graphs);
        default:
            return 0;
    }
}

bool is_value_field(uint32_t number) {
    return derived_type(number) != 0 || number == field::Attribute::tp ||
           number == field::Attribute::type_protos || number == field::Attribute::sparse_tensor ||
           number == field::Attribute::sparse_tensors;
}

}  // namespace

void GraphReader::read_attribute(std::string_view message, Scope& scope, Attributes& attributes,
                                 uint32_t field, std::string& foreign) {
    std::string name;
    std::string extras;
    std::string reference;
    int64_t type = 0;
    int64_t derived = 0;
    for (Fields fields(message); fields.next();) {
        if (derived == 0) derived = derived_type(fields.number());
        if (fields.number() == field::Attribute::name)
            name = fields.text();
        else if (fields.number() == field::Attribute::type)
            type = fields.integer();
        else if (fields.number() == field::Attribute::ref_attr_name)
            reference = fields.text();
        else if (is_value_field(fields.number()))
            fields.skip();
        else
            fields.keep(extras);
    }
    try {
        require(!name.empty(), "an attribute has no name");
        require(!attributes.has(name), "is given twice");
        if (!reference.empty())
            attributes.set(name, AttributeReference{reference, static_cast<int>(type)});
        else
            attributes.set(name, read_attribute_value(message, type != 0 ? type : derived, scope));
    } catch (const Error& error) {
        throw error.in(fmt::format("attribute '{}'", name));
    }
    if (extras.empty() || std::holds_alternative<ForeignAttribute>(*attributes.find(name))) return;
    std::string named;
    protozero::pbf_writer(named).add_string(field::Attribute::name, name);
    protozero::pbf_writer(foreign).add_message(field, named + extras);
}

AttributeValue GraphReader::read_attribute_value(std::string_view message, int64_t type, Scope& scope) {
    using F = field::Attribute;
    // Visits the fields that hold the value of an attribute of this type.
    const auto each = [&](uint32_t number, const auto& visit) {
        for (Fields fields(message); fields.next();) {
            if (fields.number() == number)
                visit(fields);
            else
                fields.skip();
        }
    };
    switch (static_cast<AttributeType>(type)) {
        case AttributeType::f: {
            float value = 0;
            each(F::f, [&](Fields& fields) { value = fields.real(); });
            return value;
        }
        case AttributeType::i: {
            int64_t value = 0;
            each(F::i, [&](Fields& fields) { value = fields.integer(); });
            return value;
        }
        case AttributeType::s: {
            std::string value;
            each(F::s, [&](Fields& fields) { value = fields.text(); });
            return value;
        }
        case AttributeType::floats: {
            std::vector<float> values;
            each(F::floats, [&](Fields& fields) { fields.append_reals(values); });
            return values;
        }
        case AttributeType::ints: {
            std::vector<int64_t> values;
            each(F::ints, [&](Fields& fields) { fields.append_integers(values); });
            return values;
        }
        case AttributeType::strings: {
            std::vector<std::string> values;
            each(F::strings, [&](Fields& fields) { values.push_back(fields.text()); });
            return values;
        }
        case AttributeType::t:
        case AttributeType::tensors: {
            std::vector<Tensor> values;
            bool known = true;
            const bool single = static_cast<AttributeType>(type) == AttributeType::t;
            each(single ? F::t : F::tensors, [&](Fields& fields) {
                const std::string_view tensor = fields.view();
                if (TensorReader::is_known(tensor))
                    values.push_back(tensors_.read(tensor).tensor);
                else
                    known = false;
            });
            if (!known) break;
            if (!single) return values;
            require(!values.empty(), "the tensor is missing");
            return values.back();
        }
        case AttributeType::g: {
            std::shared_ptr<Graph> value;
            each(F::g, [&](Fields& fields) {
                require(value == nullptr, "has more than one graph");
                value = read_subgraph(fields.view(), scope);
            });
            require(value != nullptr, "the graph is missing");
            return value;
        }
        case AttributeType::graphs: {
            std::vector<std::shared_ptr<Graph>> values;
            each(F::graphs, [&](Fields& fields) { values.push_back(read_subgraph(fields.view(), scope)); });
            return values;
        }
        default:
            break;
    }
    return ForeignAttribute{std::string(message)};
}

std::shared_ptr<Graph> GraphReader::read_subgraph(std::string_view message, Scope& scope) {
    require(depth_ < kMaxGraphDepth, "sub-graphs are nested more than {} deep", kMaxGraphDepth);
    ++depth_;
    auto graph = std::make_shared<Graph>();
    read_graph(message, *graph, &scope);
    --depth_;
    return graph;
}

}  // namespace kilter::onnx
