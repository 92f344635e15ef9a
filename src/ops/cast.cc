// Cast and CastLike: element-wise conversion; BitCast: the same bits under another type of equal width.
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/convert.h"
#include "base/fail.h"
#include "graph/onnx_dtype.h"
#include "ops/op.h"
#include "ops/shape_data.h"

namespace kilter::cast_op {

// Numbers as Python's str() of NumPy scalars writes them, which is what ONNX asks for.
std::string number_text(const Tensor& x, int64_t index) {
    if (x.dtype() == DType::boolean) return load_int(x.dtype(), x.raw(), index) != 0 ? "True" : "False";
    if (x.dtype() == DType::u64)
        return fmt::format("{}", static_cast<uint64_t>(load_int(x.dtype(), x.raw(), index)));
    if (is_integer(x.dtype())) return fmt::format("{}", load_int(x.dtype(), x.raw(), index));
    const double value = load_double(x.dtype(), x.raw(), index);
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
    std::string text =
        x.dtype() == DType::f64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
    return text;
}

Tensor to_strings(const Tensor& x) {
    Tensor result(DType::string, x.shape());
    for (int64_t i = 0; i < x.size(); ++i)
        result.as_strings_mutable()[static_cast<size_t>(i)] = number_text(x, i);
    return result;
}

double parse_number(const std::string& text) {
    size_t used = 0;
    try {
        const double value = std::stod(text, &used);  // also reads INF, -inf and NaN, as ONNX spells them
        if (used == text.size()) return value;
    } catch (const std::logic_error&) {
        used = 0;
    }
    fail("cannot read '{}' as a number", text);
}

Tensor from_strings(const Tensor& x, DType dtype) {
    Tensor result(dtype, x.shape());
    if (result.bytes() > 0) std::memset(result.raw_mutable(), 0, result.bytes());
    for (int64_t i = 0; i < x.size(); ++i) {
        const std::string& text = x.as_strings()[static_cast<size_t>(i)];
        int64_t integer = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
        if (is_integer(dtype) && error == std::errc() && end == text.data() + text.size())
            store_int(dtype, result.raw_mutable(), i, integer);
        else
            store_double(dtype, result.raw_mutable(), i, parse_number(text));
    }
    return result;
}

// f8e8m0 holds powers of two only; which neighbour a number goes to is an attribute.
Tensor to_powers_of_two(const Tensor& x, const std::string& round_mode, bool saturate) {
    require(round_mode == "up" || round_mode == "down" || round_mode == "nearest",
            "round_mode must be 'up', 'down' or 'nearest', not '{}'", round_mode);
    Tensor rounded = x.converted(DType::f64).clone();
    for (double& value : rounded.as_mutable<double>()) {
        int exponent = 0;
        const double fraction = std::frexp(value, &exponent);
        if (round_mode == "nearest" || !std::isfinite(value) || fraction == 0 || std::fabs(fraction) == 0.5)
            continue;
        value = std::copysign(std::ldexp(1.0, round_mode == "up" ? exponent : exponent - 1), value);
    }
    return convert(rounded, DType::f8e8m0, saturate);
}

struct CastMode {
    bool saturate;
    std::string round_mode;
};

Tensor cast(const Tensor& x, DType dtype, const CastMode& mode) {
    if (x.dtype() == dtype) return x;
    for (const DType side : {x.dtype(), dtype})
        require(side != DType::complex64 && side != DType::complex128, "cannot cast elements of {} to {}",
                name(x.dtype()), name(dtype));
    if (dtype == DType::string) return to_strings(x);
    if (x.dtype() == DType::string) return from_strings(x, dtype);
    if (dtype == DType::f8e8m0) return to_powers_of_two(x, mode.round_mode, mode.saturate);
    return convert(x, dtype, mode.saturate);
}

void infer_as(InferContext& context, DType dtype) {
    ValueType type = context.input(0);
    type.dtype = dtype;
    context.set_output(0, std::move(type));
    const auto whole = [](DType side) { return is_integer(side) && bits(side) >= 32; };
    if (whole(dtype) && (whole(context.dtype(0)) || context.dtype(0) == DType::boolean))
        pass_shape_data(context);
}

void infer_cast(InferContext& context) {
    infer_as(context, dtype_from_onnx(context.attributes().get_int("to")));
}
void infer_cast_like(InferContext& context) { infer_as(context, context.dtype(1)); }

void kernel_cast(KernelContext& context) {
    const CastMode mode{context.attributes().get_int("saturate", 1) != 0,
                        context.attributes().get_string("round_mode", "up")};
    const bool like = context.node().op() == "CastLike";
    const DType dtype = like ? context.input(1).dtype() : dtype_from_onnx(context.attributes().get_int("to"));
    context.set_output(0, cast(context.input(0), dtype, mode));
}

void infer_bit_cast(InferContext& context) {
    const DType dtype = dtype_from_onnx(context.attributes().get_int("to"));
    const DType own = context.dtype(0);
    require(own == DType::undefined || (bits(own) == bits(dtype) && bits(own) > 0),
            "elements of {} and {} differ in width", name(own), name(dtype));
    ValueType type = context.input(0);
    type.dtype = dtype;
    context.set_output(0, std::move(type));
}

void bit_cast(KernelContext& context) {
    const Tensor& x = context.input(0);
    const DType dtype = dtype_from_onnx(context.attributes().get_int("to"));
    require(bits(x.dtype()) == bits(dtype) && bits(dtype) > 0, "elements of {} and {} differ in width",
            name(x.dtype()), name(dtype));
    Tensor& y = context.output(0, dtype, x.shape());
    if (y.bytes() > 0) std::memcpy(y.raw_mutable(), x.raw(), y.bytes());
}

KILTER_OP({.name = "Cast",
           .attributes = {{"to", AttributeKind::integer, true},
                          {"saturate", AttributeKind::integer},
                          {"round_mode", AttributeKind::text}},
           .infer = infer_cast,
           .kernel = kernel_cast});
KILTER_OP({.name = "CastLike",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"saturate", AttributeKind::integer}, {"round_mode", AttributeKind::text}},
           .infer = infer_cast_like,
           .kernel = kernel_cast});
KILTER_OP({.name = "BitCast",
           .attributes = {{"to", AttributeKind::integer, true}},
           .infer = infer_bit_cast,
           .kernel = bit_cast});

}  // namespace kilter::cast_op
