#include "formats/tensorflow/tf_type.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kilter::tensorflow {
namespace {

struct TypeRow {
    int64_t code;
    DType dtype;
    std::string_view name;
    std::string_view text;
};

// The first row with a DType is the one that `of` returns: plain types come before quantized ones.
constexpr std::array kTypes{
    TypeRow{1, DType::f32, "float", "DT_FLOAT"},
    TypeRow{2, DType::f64, "double", "DT_DOUBLE"},
    TypeRow{3, DType::i32, "int32", "DT_INT32"},
    TypeRow{4, DType::u8, "uint8", "DT_UINT8"},
    TypeRow{5, DType::i16, "int16", "DT_INT16"},
    TypeRow{6, DType::i8, "int8", "DT_INT8"},
    TypeRow{7, DType::string, "string", "DT_STRING"},
    TypeRow{8, DType::complex64, "complex64", "DT_COMPLEX64"},
    TypeRow{9, DType::i64, "int64", "DT_INT64"},
    TypeRow{10, DType::boolean, "bool", "DT_BOOL"},
    TypeRow{11, DType::i8, "qint8", "DT_QINT8"},
    TypeRow{12, DType::u8, "quint8", "DT_QUINT8"},
    TypeRow{13, DType::i32, "qint32", "DT_QINT32"},
    TypeRow{14, DType::bf16, "bfloat16", "DT_BFLOAT16"},
    TypeRow{15, DType::i16, "qint16", "DT_QINT16"},
    TypeRow{16, DType::u16, "quint16", "DT_QUINT16"},
    TypeRow{17, DType::u16, "uint16", "DT_UINT16"},
    TypeRow{18, DType::complex128, "complex128", "DT_COMPLEX128"},
    TypeRow{19, DType::f16, "half", "DT_HALF"},
    TypeRow{20, DType::undefined, "resource", "DT_RESOURCE"},
    TypeRow{21, DType::undefined, "variant", "DT_VARIANT"},
    TypeRow{22, DType::u32, "uint32", "DT_UINT32"},
    TypeRow{23, DType::u64, "uint64", "DT_UINT64"},
    TypeRow{24, DType::f8e5m2, "float8_e5m2", "DT_FLOAT8_E5M2"},
    TypeRow{25, DType::f8e4m3fn, "float8_e4m3fn", "DT_FLOAT8_E4M3FN"},
};

// Variables of TensorFlow 1 have reference types: the plain code and this.
constexpr int64_t kReference = 100;

const TypeRow* find_type(int64_t code) {
    const auto* row = std::ranges::find(kTypes, code, &TypeRow::code);
    return row == kTypes.end() ? nullptr : row;
}

}  // namespace

DType TfType::dtype() const {
    const TypeRow* row = find_type(code > kReference ? code - kReference : code);
    return row == nullptr ? DType::undefined : row->dtype;
}

TfType TfType::of(DType dtype) {
    const auto* row = std::ranges::find(kTypes, dtype, &TypeRow::dtype);
    return dtype == DType::undefined || row == kTypes.end() ? TfType{} : TfType{row->code};
}

std::string to_string(TfType type) {
    const bool reference = type.code > kReference;
    const TypeRow* row = find_type(reference ? type.code - kReference : type.code);
    if (row == nullptr) return fmt::format("type {}", type.code);
    return std::string(row->name) + (reference ? "_ref" : "");
}

std::string text_name(TfType type) {
    if (type.code == 0) return "DT_INVALID";
    const bool reference = type.code > kReference;
    const TypeRow* row = find_type(reference ? type.code - kReference : type.code);
    if (row == nullptr) return {};
    return std::string(row->text) + (reference ? "_REF" : "");
}

std::optional<TfType> type_from_text(std::string_view text_name) {
    constexpr std::string_view kSuffix = "_REF";
    if (text_name == "DT_INVALID") return TfType{};
    const bool reference = text_name.ends_with(kSuffix);
    if (reference) text_name.remove_suffix(kSuffix.size());
    const auto* row = std::ranges::find(kTypes, text_name, &TypeRow::text);
    if (row == kTypes.end()) return std::nullopt;
    return TfType{row->code + (reference ? kReference : 0)};
}

std::string to_string(const TfShape& shape) {
    if (!shape.dims) return "?";
    std::vector<std::string> sizes;
    for (const int64_t size : *shape.dims) sizes.push_back(size < 0 ? "?" : std::to_string(size));
    return fmt::format("[{}]", fmt::join(sizes, ","));
}

std::optional<Dims> to_dims(const TfShape& shape) {
    if (!shape.dims) return std::nullopt;
    Dims dims;
    for (const int64_t size : *shape.dims) dims.push_back(size < 0 ? Dim() : Dim(size));
    return dims;
}

}  // namespace kilter::tensorflow
