#include "kilter/graph/type.h"

#include "base/fail.h"

namespace kilter {

ValueType ValueType::of(const Tensor& tensor) { return {tensor.dtype(), to_dims(tensor.shape())}; }

bool ValueType::is_static() const {
    if (dtype == DType::undefined || !shape) return false;
    for (const Dim& dim : *shape)
        if (!dim.known()) return false;
    return true;
}

Shape ValueType::static_shape() const {
    require(is_static(), "the shape {} is not fully known", to_string(*this));
    Shape result;
    for (const Dim& dim : *shape) result.push_back(dim.value);
    return result;
}

std::string to_string(const Dim& dim) {
    if (dim.known()) return std::to_string(dim.value);
    return dim.symbol.empty() ? "?" : dim.symbol;
}

std::string to_string(const Dims& dims) {
    std::string text = "[";
    for (size_t i = 0; i < dims.size(); ++i) {
        if (i > 0) text += ", ";
        text += to_string(dims[i]);
    }
    return text + "]";
}

std::string to_string(const ValueType& type) {
    if (!type.foreign.empty()) return "(not a tensor)";
    return fmt::format("{}{}", type.dtype == DType::undefined ? "?" : name(type.dtype),
                       type.shape ? to_string(*type.shape) : "[...]");
}

Dims to_dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace kilter
