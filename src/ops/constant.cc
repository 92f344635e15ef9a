// Constant: a tensor written into the graph; ConstantOfShape: one value in a computed shape.
#include <cstring>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/movement.h"
#include "ops/shape_data.h"

namespace kilter::constant_op {

// Exactly one of the attributes holds the value.
Tensor value_of(const Attributes& attributes) {
    if (attributes.has("value")) return attributes.get_tensor("value");
    if (attributes.has("value_int")) return Tensor::scalar<int64_t>(attributes.get_int("value_int"));
    if (attributes.has("value_float")) return Tensor::scalar<float>(attributes.get_float("value_float"));
    if (attributes.has("value_string")) return Tensor::strings({}, {attributes.get_string("value_string")});
    if (attributes.has("value_ints")) {
        const std::vector<int64_t> values = attributes.get_ints("value_ints");
        return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
    }
    if (attributes.has("value_floats")) {
        const std::vector<float> values = attributes.get_floats("value_floats");
        return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
    }
    if (attributes.has("value_strings")) {
        std::vector<std::string> values = attributes.get_strings("value_strings");
        return Tensor::strings({static_cast<int64_t>(values.size())}, std::move(values));
    }
    fail("no attribute holds the value of the constant");
}

void infer_constant(InferContext& context) {
    if (context.attributes().has("sparse_value")) return;
    const Tensor value = value_of(context.attributes());
    context.set_output(0, ValueType::of(value));
    const bool integers = is_integer(value.dtype()) || value.dtype() == DType::boolean;
    if (!integers || value.rank() > 1 || static_cast<size_t>(value.size()) > kMaxShapeData) return;
    Dims data;
    for (const int64_t entry : value.to_ints()) data.push_back(data_entry(entry));
    context.set_shape_data(0, std::move(data));
}

void constant(KernelContext& context) { context.set_output(0, value_of(context.attributes())); }

Tensor fill_value(const Attributes& attributes) {
    const Tensor value = attributes.has("value") ? attributes.get_tensor("value") : Tensor::scalar<float>(0);
    require(value.size() == 1, "the value of ConstantOfShape must be one element, not {}", value.size());
    return value;
}

void infer_constant_of_shape(InferContext& context) {
    const Tensor value = fill_value(context.attributes());
    const std::optional<Dims> target = context.shape_data(0);
    if (!target) {
        const std::optional<Dims>& length = context.shape(0);
        if (!length || length->size() != 1 || !(*length)[0].known() || (*length)[0].value > 64)
            return context.set_output(0, value.dtype());
        return context.set_output(0, value.dtype(), Dims(static_cast<size_t>((*length)[0].value)));
    }
    for (const Dim& entry : *target)
        require(entry_number(entry).value_or(0) >= 0, "the shape {} has a negative dimension",
                to_string(*target));
    context.set_output(0, value.dtype(), *target);
    if (!is_integer(value.dtype()) || target->size() > 1) return;
    const Dim length = target->empty() ? Dim(1) : (*target)[0];
    if (length.known() && length.value <= static_cast<int64_t>(kMaxShapeData))
        context.set_shape_data(0, Dims(static_cast<size_t>(length.value), data_entry(value.to_ints()[0])));
}

void constant_of_shape(KernelContext& context) {
    const Tensor value = fill_value(context.attributes());
    const Shape shape = context.input(0).to_ints();
    ElementMove move(context, {value});
    std::byte* y = move.target(0, shape);
    copy_block({element_count(shape)}, move.width(), move.source(), {0}, y, {1});
    move.finish();
}

KILTER_OP({.name = "Constant",
           .min_inputs = 0,
           .max_inputs = 0,
           .attributes = {{"value", AttributeKind::tensor},
                          {"value_int", AttributeKind::integer},
                          {"value_ints", AttributeKind::integers},
                          {"value_float", AttributeKind::real},
                          {"value_floats", AttributeKind::reals},
                          {"value_string", AttributeKind::text},
                          {"value_strings", AttributeKind::texts}},
           .infer = infer_constant,
           .kernel = constant});
KILTER_OP({.name = "ConstantOfShape",
           .attributes = {{"value", AttributeKind::tensor}},
           .infer = infer_constant_of_shape,
           .kernel = constant_of_shape});

}  // namespace kilter::constant_op
