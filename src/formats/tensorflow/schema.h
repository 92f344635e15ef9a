// Field numbers of TensorFlow's messages that kilter interprets (graph.proto, node_def.proto, attr_value.proto, …).
#pragma once

#include <cstdint>

namespace kilter::tensorflow::field {

struct GraphDef {
    enum : uint32_t { node = 1, library = 2, version = 3, versions = 4 };
};

struct NodeDef {
    enum : uint32_t { name = 1, op = 2, input = 3, device = 4, attr = 5 };
};

//! An entry of any map.
struct Entry {
    enum : uint32_t { key = 1, value = 2 };
};

struct AttrValue {
    enum : uint32_t {
        list = 1,
        s = 2,
        i = 3,
        f = 4,
        b = 5,
        type = 6,
        shape = 7,
        tensor = 8,
        placeholder = 9,
        func = 10
    };
};

//! The elements of AttrValue.list have the numbers of AttrValue, but for functions.
struct ListValue {
    enum : uint32_t { s = 2, i = 3, f = 4, b = 5, type = 6, shape = 7, tensor = 8, func = 9 };
};

struct NameAttrList {
    enum : uint32_t { name = 1, attr = 2 };
};

struct TensorShape {
    enum : uint32_t { dim = 2, unknown_rank = 3 };
};

struct Dimension {
    enum : uint32_t { size = 1, name = 2 };
};

struct Tensor {
    enum : uint32_t {
        dtype = 1,
        tensor_shape = 2,
        version_number = 3,
        tensor_content = 4,
        float_val = 5,
        double_val = 6,
        int_val = 7,
        string_val = 8,
        scomplex_val = 9,
        int64_val = 10,
        bool_val = 11,
        dcomplex_val = 12,
        half_val = 13,
        uint32_val = 16,
        uint64_val = 17,
        float8_val = 18
    };
};

struct Versions {
    enum : uint32_t { producer = 1, min_consumer = 2, bad_consumers = 3 };
};

struct Library {
    enum : uint32_t { function = 1 };
};

struct FunctionDef {
    enum : uint32_t { signature = 1, node_def = 3, ret = 4 };
};

struct OpDef {
    enum : uint32_t { name = 1, input_arg = 2, output_arg = 3 };
};

struct ArgDef {
    enum : uint32_t { name = 1, type = 3, type_attr = 4, number_attr = 5, type_list_attr = 6 };
};

struct SavedModel {
    enum : uint32_t { meta_graphs = 2 };
};

struct MetaGraph {
    enum : uint32_t { meta_info = 1, graph_def = 2, signature_def = 5 };
};

struct MetaInfo {
    enum : uint32_t { tags = 4 };
};

struct Signature {
    enum : uint32_t { inputs = 1, outputs = 2, method_name = 3 };
};

struct TensorInfo {
    enum : uint32_t { name = 1, dtype = 2, tensor_shape = 3 };
};

}  // namespace kilter::tensorflow::field
