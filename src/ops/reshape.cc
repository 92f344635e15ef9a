// Reshape: the same elements under another shape; 0 copies a dimension (unless allowzero), -1 is worked out.
#include "base/fail.h"
#include "ops/op.h"
#include "ops/shape_data.h"

namespace kilter::reshape_op {

void infer_unknown_target(InferContext& context) {
    const std::optional<Dims>& target = context.shape(1);
    if (!target || target->size() != 1 || !(*target)[0].known() || (*target)[0].value > 64)
        return context.set_output(0, context.dtype(0));
    context.set_output(0, context.dtype(0), Dims(static_cast<size_t>((*target)[0].value)));
}

void infer(InferContext& context) {
    const std::optional<Dims> target = context.shape_data(1);
    if (!target) return infer_unknown_target(context);
    const std::optional<Dims>& x = context.shape(0);
    const bool allow_zero = context.attributes().get_int("allowzero", 0) != 0;
    Dims shape;
    Dims numerator = x.value_or(Dims());  // what is left of x once copied dimensions are taken out
    Dims denominator;
    std::vector<bool> copied(numerator.size(), false);
    int inferred = -1;  // position of the dimension to work out
    size_t unknowns =
        0;  // entries of which nothing is known; a single one follows from the others, as -1 does
    for (size_t i = 0; i < target->size(); ++i) {
        const Dim& entry = (*target)[i];
        const std::optional<int64_t> number = entry_number(entry);
        require(!number || *number >= -1, "the new shape {} has a negative dimension", to_string(*target));
        if (number == 0 && !allow_zero) {
            require(!x || i < x->size(), "the new shape {} copies dimension {} of {}", to_string(*target), i,
                    to_string(x.value_or(Dims())));
            shape.push_back(x ? (*x)[i] : Dim());
            if (x) copied[i] = true;
            continue;
        }
        if (number == -1 || (!number && entry.symbol.empty())) {
            require(
                number != -1 || inferred < 0 || entry_number((*target)[static_cast<size_t>(inferred)]) != -1,
                "the new shape {} has more than one -1", to_string(*target));
            inferred = static_cast<int>(i);
            ++unknowns;
            shape.emplace_back();
            continue;
        }
        shape.push_back(entry);
        denominator.push_back(entry);
    }
    for (size_t i = copied.size(); i-- > 0;)
        if (copied[i]) numerator.erase(numerator.begin() + static_cast<std::ptrdiff_t>(i));
    if (x && unknowns <= 1) {
        const std::optional<Dim> rest = dim_quotient(numerator, denominator);
        if (inferred >= 0 && rest) shape[static_cast<size_t>(inferred)] = *rest;
        require(inferred >= 0 || !rest || !rest->known() || rest->value == 1, "cannot reshape {} to {}",
                to_string(*x), to_string(shape));
    }
    context.set_output(0, context.dtype(0), shape);
    if (shape.size() <= 1 && context.rank(0) >= 0 && context.rank(0) <= 1) pass_shape_data(context);
}

Shape target_shape(const Tensor& x, std::vector<int64_t> target, bool allow_zero) {
    Shape shape = std::move(target);
    int64_t known = 1;
    int inferred = -1;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 0 && !allow_zero) {
            require(i < x.shape().size(), "the new shape {} copies dimension {} of {}", to_string(shape), i,
                    to_string(x.shape()));
            shape[i] = x.shape()[i];
        }
        if (shape[i] == -1) {
            require(inferred < 0, "the new shape {} has more than one -1", to_string(shape));
            inferred = static_cast<int>(i);
            continue;
        }
        require(shape[i] >= 0, "the new shape {} has a negative dimension", to_string(shape));
        require(!__builtin_mul_overflow(known, shape[i], &known), "the new shape {} is too large",
                to_string(shape));
    }
    if (inferred >= 0) {
        require(known > 0 && x.size() % known == 0, "cannot reshape {} to {}", to_string(x.shape()),
                to_string(shape));
        shape[static_cast<size_t>(inferred)] = x.size() / known;
    }
    return shape;
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const bool allow_zero = context.attributes().get_int("allowzero", 0) != 0;
    context.set_output(0, x.reshaped(target_shape(x, context.input(1).to_ints(), allow_zero)));
}

KILTER_OP({.name = "Reshape",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"allowzero", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::reshape_op
