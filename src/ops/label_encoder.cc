// LabelEncoder (ai.onnx.ml): looks every element up in a table of keys and gives the value beside it.
#include <cmath>
#include <map>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/op.h"

namespace kilter::label_encoder_op {

constexpr std::string_view kDomain = "ai.onnx.ml";

// Keys or values, however the attributes spell them: as a tensor, or as one of three lists.
Tensor column(const Attributes& attributes, const std::string& name) {
    if (attributes.has(name + "_tensor")) return attributes.get_tensor(name + "_tensor");
    if (attributes.has(name + "_strings")) {
        std::vector<std::string> strings = attributes.get_strings(name + "_strings");
        const auto count = static_cast<int64_t>(strings.size());
        return Tensor::strings({count}, std::move(strings));
    }
    if (attributes.has(name + "_int64s")) {
        const std::vector<int64_t> numbers = attributes.get_ints(name + "_int64s");
        return Tensor::of<int64_t>({static_cast<int64_t>(numbers.size())}, numbers);
    }
    require(attributes.has(name + "_floats"), "the attribute for its {} is missing", name);
    const std::vector<float> numbers = attributes.get_floats(name + "_floats");
    return Tensor::of<float>({static_cast<int64_t>(numbers.size())}, numbers);
}

Tensor default_value(const Attributes& attributes, DType dtype) {
    if (attributes.has("default_tensor")) {
        const Tensor& given = attributes.get_tensor("default_tensor");
        require(given.dtype() == dtype && given.size() == 1, "the default must be one {}", name(dtype));
        return given;
    }
    if (dtype == DType::string)
        return Tensor::strings({1}, {attributes.get_string("default_string", "_Unused")});
    if (is_integer(dtype)) {
        Tensor tensor = Tensor::filled(dtype, {1}, 0);
        store_int(dtype, tensor.raw_mutable(), 0, attributes.get_int("default_int64", -1));
        return tensor;
    }
    return Tensor::filled(dtype, {1}, attributes.get_float("default_float", -0.0F));
}

std::string key_of(const Tensor& tensor, int64_t index) {
    if (tensor.dtype() == DType::string) return tensor.as_strings()[static_cast<size_t>(index)];
    if (is_integer(tensor.dtype())) return std::to_string(load_int(tensor.dtype(), tensor.raw(), index));
    const double number = load_double(tensor.dtype(), tensor.raw(), index);
    return std::isnan(number) ? "nan"
                              : fmt::format("{:a}", number + 0.0);  // every NaN, and both zeros, are one key
}

void infer(InferContext& context) {
    ValueType type;
    type.dtype = column(context.attributes(), "values").dtype();
    type.shape = context.shape(0);
    context.set_output(0, std::move(type));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const Tensor keys = column(context.attributes(), "keys");
    const Tensor values = column(context.attributes(), "values");
    require(keys.size() == values.size(), "{} keys for {} values", keys.size(), values.size());
    require(keys.dtype() == x.dtype(), "keys are {} but the input is {}", name(keys.dtype()),
            name(x.dtype()));
    const Tensor otherwise = default_value(context.attributes(), values.dtype());
    std::map<std::string, int64_t> places;
    for (int64_t i = 0; i < keys.size(); ++i) places.emplace(key_of(keys, i), i);
    Tensor& y = context.output(0, values.dtype(), x.shape());
    for (int64_t i = 0; i < x.size(); ++i) {
        const auto found = places.find(key_of(x, i));
        const Tensor& from = found == places.end() ? otherwise : values;
        const int64_t place = found == places.end() ? 0 : found->second;
        if (values.dtype() == DType::string)
            y.as_strings_mutable()[static_cast<size_t>(i)] = from.as_strings()[static_cast<size_t>(place)];
        else if (is_integer(values.dtype()))
            store_int(values.dtype(), y.raw_mutable(), i, load_int(from.dtype(), from.raw(), place));
        else
            store_double(values.dtype(), y.raw_mutable(), i, load_double(from.dtype(), from.raw(), place));
    }
}

KILTER_OP({.name = "LabelEncoder",
           .domain = kDomain,
           .attributes = {{"keys_tensor", AttributeKind::tensor},
                          {"keys_strings", AttributeKind::texts},
                          {"keys_int64s", AttributeKind::integers},
                          {"keys_floats", AttributeKind::reals},
                          {"values_tensor", AttributeKind::tensor},
                          {"values_strings", AttributeKind::texts},
                          {"values_int64s", AttributeKind::integers},
                          {"values_floats", AttributeKind::reals},
                          {"default_tensor", AttributeKind::tensor},
                          {"default_string", AttributeKind::text},
                          {"default_int64", AttributeKind::integer},
                          {"default_float", AttributeKind::real}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::label_encoder_op
