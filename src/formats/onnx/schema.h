// Field numbers of the ONNX messages that kilter interprets (onnx.proto), and the attribute types.
#pragma once

#include <cstdint>

namespace kilter::onnx::field {

struct Model {
    enum : uint32_t {
        ir_version = 1,
        producer_name = 2,
        producer_version = 3,
        domain = 4,
        model_version = 5,
        doc_string = 6,
        graph = 7,
        opset_import = 8,
        metadata_props = 14,
        functions = 25
    };
};

struct OperatorSet {
    enum : uint32_t { domain = 1, version = 2 };
};

struct Entry {
    enum : uint32_t { key = 1, value = 2 };
};

struct Graph {
    enum : uint32_t {
        node = 1,
        name = 2,
        initializer = 5,
        doc_string = 10,
        input = 11,
        output = 12,
        value_info = 13,
        sparse_initializer = 15
    };
};

struct Function {
    enum : uint32_t {
        name = 1,
        input = 4,
        output = 5,
        attribute = 6,
        node = 7,
        doc_string = 8,
        opset_import = 9,
        domain = 10,
        attribute_proto = 11,
        value_info = 12,
        overload = 13
    };
};

struct Node {
    enum : uint32_t {
        input = 1,
        output = 2,
        name = 3,
        op_type = 4,
        attribute = 5,
        doc_string = 6,
        domain = 7,
        overload = 8
    };
};

struct Attribute {
    enum : uint32_t {
        name = 1,
        f = 2,
        i = 3,
        s = 4,
        t = 5,
        g = 6,
        floats = 7,
        ints = 8,
        strings = 9,
        tensors = 10,
        graphs = 11,
        tp = 14,
        type_protos = 15,
        type = 20,
        ref_attr_name = 21,
        sparse_tensor = 22,
        sparse_tensors = 23
    };
};

struct ValueInfo {
    enum : uint32_t { name = 1, type = 2, doc_string = 3 };
};

struct Type {
    enum : uint32_t { tensor_type = 1, sequence_type = 4, denotation = 6 };
};

struct TensorType {
    enum : uint32_t { elem_type = 1, shape = 2 };
};

struct TensorShape {
    enum : uint32_t { dim = 1 };
};

struct Dimension {
    enum : uint32_t { dim_value = 1, dim_param = 2, denotation = 3 };
};

struct Tensor {
    enum : uint32_t {
        dims = 1,
        data_type = 2,
        segment = 3,
        float_data = 4,
        int32_data = 5,
        string_data = 6,
        int64_data = 7,
        name = 8,
        raw_data = 9,
        double_data = 10,
        uint64_data = 11,
        doc_string = 12,
        external_data = 13,
        data_location = 14
    };
};

struct SparseTensor {
    enum : uint32_t { values = 1, indices = 2, dims = 3 };
};

}  // namespace kilter::onnx::field

namespace kilter::onnx {

enum class AttributeType : int {
    undefined = 0,
    f = 1,
    i = 2,
    s = 3,
    t = 4,
    g = 5,
    floats = 6,
    ints = 7,
    strings = 8,
    tensors = 9,
    graphs = 10
};

//! Sub-graphs nest at most this deep: far beyond any real model, well within the stack.
inline constexpr int kMaxGraphDepth = 64;

}  // namespace kilter::onnx
