#include "formats/tensorflow/text_schema.h"

#include <algorithm>
#include <array>
#include <map>

namespace kilter::tensorflow {
namespace {

// One message after another; "name=number:kind" where a kind that is none of the simple ones is a message.
struct SchemaLine {
    std::string_view message;
    std::vector<std::tuple<std::string_view, uint32_t, std::string_view>> fields;
};

const std::vector<SchemaLine>& schema_lines() {
    static const std::vector<SchemaLine> lines{
        {"GraphDef",
         {{"node", 1, "NodeDef"},
          {"library", 2, "Library"},
          {"version", 3, "int"},
          {"versions", 4, "Versions"}}},
        {"NodeDef",
         {{"name", 1, "text"},
          {"op", 2, "text"},
          {"input", 3, "text"},
          {"device", 4, "text"},
          {"attr", 5, "AttrEntry"},
          {"experimental_debug_info", 6, "DebugInfo"},
          {"experimental_type", 7, "FullType"}}},
        {"DebugInfo", {{"original_node_names", 1, "text"}, {"original_func_names", 2, "text"}}},
        {"AttrEntry", {{"key", 1, "text"}, {"value", 2, "AttrValue"}}},
        {"AttrValue",
         {{"list", 1, "ListValue"},
          {"s", 2, "text"},
          {"i", 3, "int"},
          {"f", 4, "real"},
          {"b", 5, "bool"},
          {"type", 6, "type"},
          {"shape", 7, "Shape"},
          {"tensor", 8, "Tensor"},
          {"placeholder", 9, "text"},
          {"func", 10, "NameAttrList"}}},
        {"ListValue",
         {{"s", 2, "text"},
          {"i", 3, "int"},
          {"f", 4, "real"},
          {"b", 5, "bool"},
          {"type", 6, "type"},
          {"shape", 7, "Shape"},
          {"tensor", 8, "Tensor"},
          {"func", 9, "NameAttrList"}}},
        {"NameAttrList", {{"name", 1, "text"}, {"attr", 2, "AttrEntry"}}},
        {"Shape", {{"dim", 2, "Dim"}, {"unknown_rank", 3, "bool"}}},
        {"Dim", {{"size", 1, "int"}, {"name", 2, "text"}}},
        {"Tensor",
         {{"dtype", 1, "type"},
          {"tensor_shape", 2, "Shape"},
          {"version_number", 3, "int"},
          {"tensor_content", 4, "text"},
          {"float_val", 5, "real"},
          {"double_val", 6, "wide"},
          {"int_val", 7, "int"},
          {"string_val", 8, "text"},
          {"scomplex_val", 9, "real"},
          {"int64_val", 10, "int"},
          {"bool_val", 11, "bool"},
          {"dcomplex_val", 12, "wide"},
          {"half_val", 13, "int"},
          {"resource_handle_val", 14, "ResourceHandle"},
          {"variant_val", 15, "Variant"},
          {"uint32_val", 16, "unsigned"},
          {"uint64_val", 17, "unsigned"},
          {"float8_val", 18, "text"}}},
        {"ResourceHandle",
         {{"device", 1, "text"},
          {"container", 2, "text"},
          {"name", 3, "text"},
          {"hash_code", 4, "unsigned"},
          {"maybe_type_name", 5, "text"},
          {"dtypes_and_shapes", 6, "TypeAndShape"}}},
        {"TypeAndShape", {{"dtype", 1, "type"}, {"shape", 2, "Shape"}}},
        {"Variant", {{"type_name", 1, "text"}, {"metadata", 2, "text"}, {"tensors", 3, "Tensor"}}},
        {"Versions", {{"producer", 1, "int"}, {"min_consumer", 2, "int"}, {"bad_consumers", 3, "int"}}},
        {"Library",
         {{"function", 1, "FunctionDef"},
          {"gradient", 2, "Gradient"},
          {"registered_gradients", 3, "Registered"}}},
        {"Gradient", {{"function_name", 1, "text"}, {"gradient_func", 2, "text"}}},
        {"Registered", {{"gradient_func", 1, "text"}, {"registered_op_type", 2, "text"}}},
        {"FunctionDef",
         {{"signature", 1, "OpDef"},
          {"node_def", 3, "NodeDef"},
          {"ret", 4, "TextEntry"},
          {"attr", 5, "AttrEntry"},
          {"control_ret", 6, "TextEntry"},
          {"arg_attr", 7, "ArgAttrEntry"},
          {"resource_arg_unique_id", 8, "IdEntry"}}},
        {"TextEntry", {{"key", 1, "text"}, {"value", 2, "text"}}},
        {"IdEntry", {{"key", 1, "int"}, {"value", 2, "int"}}},
        {"ArgAttrEntry", {{"key", 1, "int"}, {"value", 2, "ArgAttrs"}}},
        {"ArgAttrs", {{"attr", 1, "AttrEntry"}}},
        {"OpDef",
         {{"name", 1, "text"},
          {"input_arg", 2, "ArgDef"},
          {"output_arg", 3, "ArgDef"},
          {"attr", 4, "AttrDef"},
          {"summary", 5, "text"},
          {"description", 6, "text"},
          {"deprecation", 8, "Deprecation"},
          {"is_aggregate", 16, "bool"},
          {"is_stateful", 17, "bool"},
          {"is_commutative", 18, "bool"},
          {"allows_uninitialized_input", 19, "bool"},
          {"control_output", 20, "text"},
          {"is_distributed_communication", 21, "bool"}}},
        {"ArgDef",
         {{"name", 1, "text"},
          {"description", 2, "text"},
          {"type", 3, "type"},
          {"type_attr", 4, "text"},
          {"number_attr", 5, "text"},
          {"type_list_attr", 6, "text"},
          {"handle_data", 7, "TypeAndShape"},
          {"is_ref", 16, "bool"},
          {"experimental_full_type", 17, "FullType"}}},
        {"AttrDef",
         {{"name", 1, "text"},
          {"type", 2, "text"},
          {"default_value", 3, "AttrValue"},
          {"description", 4, "text"},
          {"has_minimum", 5, "bool"},
          {"minimum", 6, "int"},
          {"allowed_values", 7, "AttrValue"}}},
        {"Deprecation", {{"version", 1, "int"}, {"explanation", 2, "text"}}},
        {"FullType",
         {{"type_id", 1, "full_type"}, {"args", 2, "FullType"}, {"s", 3, "text"}, {"i", 4, "int"}}},
    };
    return lines;
}

std::map<std::string_view, TextMessage> make_schema() {
    const std::map<std::string_view, TextKind> kinds{
        {"int", TextKind::integer},    {"unsigned", TextKind::unsigned_integer},
        {"bool", TextKind::boolean},   {"real", TextKind::real},
        {"wide", TextKind::wide_real}, {"text", TextKind::text},
        {"type", TextKind::type},      {"full_type", TextKind::full_type}};
    std::map<std::string_view, TextMessage> schema;
    for (const SchemaLine& line : schema_lines()) schema[line.message].name = line.message;
    for (const SchemaLine& line : schema_lines()) {
        for (const auto& [name, number, kind] : line.fields) {
            const auto simple = kinds.find(kind);
            TextField field{name, number, TextKind::message, nullptr};
            if (simple != kinds.end())
                field.kind = simple->second;
            else
                field.message = &schema.at(kind);
            schema[line.message].fields.push_back(field);
        }
    }
    return schema;
}

constexpr std::array<std::pair<std::string_view, int64_t>, 34> kFullTypes{{
    {"TFT_UNSET", 0},
    {"TFT_VAR", 1},
    {"TFT_ANY", 2},
    {"TFT_PRODUCT", 3},
    {"TFT_NAMED", 4},
    {"TFT_FOR_EACH", 20},
    {"TFT_CALLABLE", 100},
    {"TFT_BOOL", 200},
    {"TFT_UINT8", 201},
    {"TFT_UINT16", 202},
    {"TFT_UINT32", 203},
    {"TFT_UINT64", 204},
    {"TFT_INT8", 205},
    {"TFT_INT16", 206},
    {"TFT_INT32", 207},
    {"TFT_INT64", 208},
    {"TFT_HALF", 209},
    {"TFT_FLOAT", 210},
    {"TFT_DOUBLE", 211},
    {"TFT_COMPLEX64", 212},
    {"TFT_COMPLEX128", 213},
    {"TFT_STRING", 214},
    {"TFT_BFLOAT16", 215},
    {"TFT_TENSOR", 1000},
    {"TFT_ARRAY", 1001},
    {"TFT_OPTIONAL", 1002},
    {"TFT_LITERAL", 1003},
    {"TFT_ENCODED", 1004},
    {"TFT_SHAPE_TENSOR", 1005},
    {"TFT_DATASET", 10102},
    {"TFT_RAGGED", 10103},
    {"TFT_ITERATOR", 10104},
    {"TFT_MUTEX_LOCK", 10202},
    {"TFT_LEGACY_VARIANT", 10203},
}};

}  // namespace

std::optional<int64_t> full_type_from_text(std::string_view name) {
    for (const auto& [text, id] : kFullTypes)
        if (text == name) return id;
    return std::nullopt;
}

std::string_view full_type_name(int64_t id) {
    for (const auto& [text, number] : kFullTypes)
        if (number == id) return text;
    return {};
}

const TextField* TextMessage::find(std::string_view field_name) const {
    const auto found = std::ranges::find(fields, field_name, &TextField::name);
    return found == fields.end() ? nullptr : &*found;
}

const TextField* TextMessage::find(uint32_t number) const {
    const auto found = std::ranges::find(fields, number, &TextField::number);
    return found == fields.end() ? nullptr : &*found;
}

const TextMessage& graph_def_schema() {
    static const std::map<std::string_view, TextMessage> schema = make_schema();
    return schema.at("GraphDef");
}

}  // namespace kilter::tensorflow
