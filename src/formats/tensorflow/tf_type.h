// Element types and shapes as TensorFlow counts them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kilter/base/dtype.h"
#include "kilter/graph/type.h"

namespace kilter::tensorflow {

//! A DataType of types.proto. It says more than DType: quint8 and uint8 differ, and there are resources and variants.
struct TfType {
    int64_t code = 0;

    //! The number type that holds the elements (u8 for quint8); undefined for resources, variants and unknown codes.
    DType dtype() const;
    static TfType of(DType dtype);
    bool operator==(const TfType&) const = default;
};

inline constexpr TfType kFloat{1}, kDouble{2}, kInt32{3}, kUint8{4}, kInt8{6}, kString{7}, kInt64{9},
    kBool{10}, kQint8{11}, kQuint8{12}, kQint32{13}, kBfloat16{14}, kHalf{19}, kResource{20}, kVariant{21};

//! "float", "int32", "quint8", …; "type 77" for unknown codes. References (codes above 100) end in "_ref".
std::string to_string(TfType type);
//! The name in text files: DT_FLOAT. Empty for unknown codes.
std::string text_name(TfType type);
std::optional<TfType> type_from_text(std::string_view text_name);

//! A shape with dimensions of -1 where the size is open; no dims at all when the rank is.
struct TfShape {
    std::optional<std::vector<int64_t>> dims;
    std::vector<std::string> names;  // of the dimensions; empty when none has one

    TfShape() = default;
    TfShape(std::vector<int64_t> known) : dims(std::move(known)) {}  // NOLINT: dimensions are a shape
    bool operator==(const TfShape&) const = default;
};

//! "?", "[]" or "[?,224,224,3]".
std::string to_string(const TfShape& shape);
//! Open dimensions become unnamed ones.
std::optional<Dims> to_dims(const TfShape& shape);

}  // namespace kilter::tensorflow
