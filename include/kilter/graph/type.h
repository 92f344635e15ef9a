// What is known about a value before it is computed: element type and a shape whose dimensions may be symbolic.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kilter/base/tensor.h"

namespace kilter {

//! One dimension: a number, a named unknown ("batch"), or an unnamed unknown.
struct Dim {
    int64_t value = -1;
    std::string symbol;

    Dim() = default;
    Dim(int64_t known) : value(known) {}  // NOLINT: numbers are dimensions
    explicit Dim(std::string name) : symbol(std::move(name)) {}
    bool known() const { return value >= 0; }
    //! The same number or the same name; two unnamed unknowns are not equal.
    friend bool operator==(const Dim& a, const Dim& b) {
        return a.known() ? a.value == b.value : (!b.known() && !a.symbol.empty() && a.symbol == b.symbol);
    }
};

using Dims = std::vector<Dim>;

struct ValueType {
    DType dtype = DType::undefined;
    std::optional<Dims> shape;  // absent: rank unknown
    std::string foreign;  // serialized type of a format when it is not a tensor (sequence, map, optional)

    ValueType() = default;
    ValueType(DType type, Dims dims) : dtype(type), shape(std::move(dims)) {}
    static ValueType of(const Tensor& tensor);
    bool is_static() const;      // element type and all dimensions known
    Shape static_shape() const;  // throws Error unless is_static()
    bool operator==(const ValueType&) const = default;
};

std::string to_string(const Dim& dim);
std::string to_string(const Dims& dims);
std::string to_string(const ValueType& type);
Dims to_dims(const Shape& shape);

}  // namespace kilter
