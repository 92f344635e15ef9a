#include "formats/onnx/types.h"

#include <algorithm>
#include <array>

#include "formats/onnx/fields.h"
#include "formats/onnx/message.h"
#include "formats/onnx/schema.h"

namespace kilter::onnx {
namespace {

// Indexed by TensorProto.DataType.
constexpr std::array<DType, 27> kDTypes{
    DType::undefined, DType::f32,        DType::u8,         DType::i8,     DType::u16,        DType::i16,  DType::i32,
    DType::i64,       DType::string,     DType::boolean,    DType::f16,    DType::f64,        DType::u32,  DType::u64,
    DType::complex64, DType::complex128, DType::bf16,       DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,
    DType::f8e5m2fnuz, DType::u4,        DType::i4,         DType::f4e2m1, DType::f8e8m0,     DType::u2,   DType::i2};

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

DType dtype_of_onnx(int64_t data_type) {
    if (data_type < 0 || data_type >= static_cast<int64_t>(kDTypes.size())) return DType::undefined;
    return kDTypes[static_cast<size_t>(data_type)];
}

int onnx_of_dtype(DType dtype) {
    for (size_t i = 0; i < kDTypes.size(); ++i)
        if (kDTypes[i] == dtype) return static_cast<int>(i);
    return 0;
}

ValueType read_type(std::string_view message, bool& annotated) {
    ValueType type;
    bool is_tensor = true;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::Type::tensor_type) {
            type = {};
            for (Fields tensor(fields.view()); tensor.next();) {
                switch (tensor.number()) {
                    case field::TensorType::elem_type: {
                        const int64_t element = tensor.integer();
                        type.dtype = dtype_of_onnx(element);
                        if (type.dtype == DType::undefined && element != 0) is_tensor = false;
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
            if (fields.number() == field::Type::denotation) annotated = true;
            else is_tensor = false;
            fields.skip();
        }
    }
    if (is_tensor) return type;
    type = {};
    type.foreign = message;
    annotated = false;
    return type;
}

std::string write_type(const ValueType& type) {
    if (!type.foreign.empty()) return type.foreign;
    if (type.dtype == DType::undefined && !type.shape) return {};
    Message tensor;
    if (type.dtype != DType::undefined) tensor.integer(field::TensorType::elem_type, onnx_of_dtype(type.dtype));
    if (type.shape) {
        Message shape;
        for (const Dim& dim : *type.shape) {
            Message entry;
            if (dim.known()) entry.integer(field::Dimension::dim_value, dim.value);
            else entry.text(field::Dimension::dim_param, dim.symbol);
            shape.message(field::TensorShape::dim, entry);
        }
        tensor.message(field::TensorType::shape, shape);
    }
    Message message;
    message.message(field::Type::tensor_type, tensor);
    return message.str();
}

}  // namespace kilter::onnx
