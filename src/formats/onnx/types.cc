#include "formats/onnx/types.h"

#include <algorithm>

#include "formats/onnx/schema.h"
#include "formats/protobuf/fields.h"
#include "formats/protobuf/message.h"
#include "graph/onnx_dtype.h"

namespace kilter::onnx {

using protobuf::Message;

using protobuf::Fields;

namespace {

Dim read_dim(std::string_view message, bool& annotated) {
    Dim dim;
    for (Fields fields(message); fields.next();) {
        switch (fields.number()) {
            case field::Dimension::dim_value:
                // Negative numbers stand for "unknown" in files of some exporters.
                dim = Dim(std::max<int64_t>(fields.integer(), -1));
                break;
            case field::Dimension::dim_param:
                dim = Dim(fields.text());
                if (dim.symbol == "?") dim = {};  // what some exporters call every dimension they do not know
                break;
            default:
                annotated = true;
                fields.skip();
        }
    }
    return dim;
}

Dims read_shape(std::string_view message, bool& annotated) {
    Dims dims;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::TensorShape::dim) {
            dims.push_back(read_dim(fields.view(), annotated));
        } else {
            annotated = true;
            fields.skip();
        }
    }
    return dims;
}

}  // namespace

ValueType read_type(std::string_view message, bool& annotated) {
    ValueType type;
    bool is_tensor = true;
    bool is_sequence = false;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::Type::tensor_type) {
            type = {};
            for (Fields tensor(fields.view()); tensor.next();) {
                switch (tensor.number()) {
                    case field::TensorType::elem_type: {
                        const int64_t element = tensor.integer();
                        if (is_onnx_dtype(element))
                            type.dtype = dtype_from_onnx(element);
                        else if (element != 0)
                            is_tensor = false;
                        break;
                    }
                    case field::TensorType::shape:
                        type.shape = read_shape(tensor.view(), annotated);
                        break;
                    default:
                        annotated = true;
                        tensor.skip();
                }
            }
        } else {
            if (fields.number() == field::Type::denotation)
                annotated = true;
            else
                is_tensor = false;
            is_sequence |= fields.number() == field::Type::sequence_type;
            fields.skip();
        }
    }
    if (is_tensor) return type;
    type = {};
    if (is_sequence) type.dtype = DType::sequence;
    type.foreign = message;
    annotated = false;
    return type;
}

std::string write_type(const ValueType& type) {
    if (!type.foreign.empty()) return type.foreign;
    if ((type.dtype == DType::undefined && !type.shape) || !is_element(type.dtype)) return {};
    Message tensor;
    if (type.dtype != DType::undefined) tensor.integer(field::TensorType::elem_type, onnx_code(type.dtype));
    if (type.shape) {
        Message shape;
        for (const Dim& dim : *type.shape) {
            Message entry;
            if (dim.known())
                entry.integer(field::Dimension::dim_value, dim.value);
            else
                entry.text(field::Dimension::dim_param, dim.symbol);
            shape.message(field::TensorShape::dim, entry);
        }
        tensor.message(field::TensorType::shape, shape);
    }
    Message message;
    message.message(field::Type::tensor_type, tensor);
    return message.str();
}

}  // namespace kilter::onnx
