// Range: start, start + delta, … up to but not including limit.
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/shape_data.h"

namespace kilter::range_op {

int64_t count_integers(int64_t start, int64_t limit, int64_t delta) {
    require(delta != 0, "the delta of a range must not be 0");
    int64_t distance = 0;
    require(!__builtin_sub_overflow(limit, start, &distance) && distance != INT64_MIN && delta != INT64_MIN,
            "the range from {} to {} is too long", start, limit);
    if ((distance > 0) != (delta > 0) || distance == 0) return 0;
    return (std::abs(distance) - 1) / std::abs(delta) + 1;
}

int64_t count_reals(double start, double limit, double delta) {
    require(delta != 0, "the delta of a range must not be 0");
    const double count = std::ceil((limit - start) / delta);
    require(!std::isnan(count) && count < 9e15, "the range from {} to {} by {} has no length", start, limit,
            delta);
    return std::max<int64_t>(static_cast<int64_t>(count), 0);
}

void infer_constants(InferContext& context, DType dtype) {
    const auto number = [&](size_t index) {
        const Tensor* tensor = context.constant(index);
        require(tensor->size() == 1, "start, limit and delta must be one number each");
        return tensor->to_doubles()[0];
    };
    context.set_output(0, dtype, {Dim(count_reals(number(0), number(1), number(2)))});
}

void infer(InferContext& context) {
    const DType dtype = common_dtype(context);
    const std::optional<Dims> start = context.shape_data(0);
    const std::optional<Dims> limit = context.shape_data(1);
    const std::optional<Dims> delta = context.shape_data(2);
    if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1) {
        if (context.constant(0) != nullptr && context.constant(1) != nullptr &&
            context.constant(2) != nullptr)
            return infer_constants(context, dtype);
        return context.set_output(0, dtype, {Dim()});
    }
    const auto first = entry_number((*start)[0]);
    const auto end = entry_number((*limit)[0]);
    const auto step = entry_number((*delta)[0]);
    if (!first || !end || !step) {
        // From 0 to a symbol: as many as the symbol says.
        const bool counts = first.value_or(-1) == 0 && step.value_or(0) == 1;
        return context.set_output(0, dtype, {counts ? (*limit)[0] : Dim()});
    }
    const int64_t count = count_integers(*first, *end, *step);
    context.set_output(0, dtype, {Dim(count)});
    if (count > static_cast<int64_t>(kMaxShapeData)) return;
    Dims data;
    for (int64_t i = 0; i < count; ++i) data.push_back(data_entry(*first + i * *step));
    context.set_shape_data(0, std::move(data));
}

void kernel(KernelContext& context) {
    const DType dtype = context.input(0).dtype();
    for (size_t i = 0; i < 3; ++i)
        require(context.input(i).size() == 1 && context.input(i).dtype() == dtype,
                "start, limit and delta must be one number each, of one type");
    const bool integers = is_integer(dtype);
    const auto integer = [&](size_t i) { return load_int(dtype, context.input(i).raw(), 0); };
    const auto real = [&](size_t i) { return load_double(dtype, context.input(i).raw(), 0); };
    const int64_t count = integers ? count_integers(integer(0), integer(1), integer(2))
                                   : count_reals(real(0), real(1), real(2));
    require_reasonable_size(dtype, {count});
    Tensor& y = context.output(0, dtype, {count});
    for (int64_t i = 0; i < count; ++i) {
        if (integers)
            store_int(dtype, y.raw_mutable(), i, integer(0) + i * integer(2));
        else
            store_double(dtype, y.raw_mutable(), i, real(0) + static_cast<double>(i) * real(2));
    }
}

KILTER_OP({.name = "Range",
           .min_inputs = 3,
           .max_inputs = 3,
           .attributes = {{"stash_type", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::range_op
