#include "ops/elementwise.h"

#include "base/convert.h"
#include "base/fail.h"
#include "ops/broadcast.h"

namespace kilter {

DType common_dtype(const InferContext& context) {
    DType dtype = DType::undefined;
    for (size_t i = 0; i < context.input_count(); ++i) {
        const DType other = context.dtype(i);
        if (dtype == DType::undefined) dtype = other;
        require(other == DType::undefined || other == dtype, "inputs have different element types: {} and {}",
                name(dtype), name(other));
    }
    return dtype;
}

std::optional<Dims> broadcast_inputs(const InferContext& context) {
    Dims shape;
    for (size_t i = 0; i < context.input_count(); ++i) {
        if (!context.shape(i)) return std::nullopt;
        shape = broadcast(shape, *context.shape(i));
    }
    return shape;
}

void map_binary(const BinaryFunction& function, const Tensor& a, const Tensor& b, Tensor& y) {
    const DType dtype = a.dtype();
    require(dtype == b.dtype(), "inputs have different element types: {} and {}", name(dtype),
            name(b.dtype()));
    const bool integers = is_integer(dtype) || dtype == DType::boolean;
    require(integers ? function.integer != nullptr : function.real != nullptr,
            "not defined for elements of {}", name(dtype));
    BroadcastRows rows({a.shape(), b.shape()}, y.shape());
    void* out = y.raw_mutable();
    int64_t index = 0;
    for (int64_t row = 0; row < rows.count(); ++row, rows.next()) {
        for (int64_t i = 0; i < rows.length(); ++i, ++index) {
            const int64_t left = rows.offset(0) + i * rows.step(0);
            const int64_t right = rows.offset(1) + i * rows.step(1);
            if (!integers) {
                store_double(
                    y.dtype(), out, index,
                    function.real(load_double(dtype, a.raw(), left), load_double(dtype, b.raw(), right)));
                continue;
            }
            const int64_t first = load_int(dtype, a.raw(), left);
            const int64_t second = load_int(dtype, b.raw(), right);
            const int64_t result = dtype == DType::u64 && function.natural != nullptr
                                       ? static_cast<int64_t>(function.natural(static_cast<uint64_t>(first),
                                                                               static_cast<uint64_t>(second)))
                                       : function.integer(first, second);
            store_int(y.dtype(), out, index, result);
        }
    }
}

}  // namespace kilter
