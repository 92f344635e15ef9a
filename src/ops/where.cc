// Where: x where the condition holds, else y, all three broadcast.
#include <cstring>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/shape_data.h"

namespace kilter::where_op {

void fold_data(InferContext& context) {
    for (size_t i = 0; i < 3; ++i)
        if (context.rank(i) < 0 || context.rank(i) > 1) return;
    const std::optional<Dims> condition = context.shape_data(0);
    const std::optional<Dims> x = context.shape_data(1);
    const std::optional<Dims> y = context.shape_data(2);
    if (!condition || !x || !y) return;
    const size_t length = std::max({condition->size(), x->size(), y->size()});
    for (const Dims* data : {&*condition, &*x, &*y})
        if (data->size() != 1 && data->size() != length) return;
    Dims result(length);
    for (size_t i = 0; i < length; ++i) {
        const auto at = [&](const Dims& data) { return data.size() == 1 ? data[0] : data[i]; };
        const std::optional<int64_t> chosen = entry_number(at(*condition));
        if (chosen)
            result[i] = *chosen != 0 ? at(*x) : at(*y);
        else if (at(*x) == at(*y))
            result[i] = at(*x);
    }
    context.set_shape_data(0, std::move(result));
}

void infer(InferContext& context) {
    const DType condition = context.dtype(0);
    require(condition == DType::undefined || condition == DType::boolean,
            "the condition must be bool, not {}", name(condition));
    const DType x = context.dtype(1);
    const DType y = context.dtype(2);
    require(x == y || x == DType::undefined || y == DType::undefined,
            "inputs have different element types: {} and {}", name(x), name(y));
    ValueType type;
    type.dtype = x != DType::undefined ? x : y;
    type.shape = broadcast_inputs(context);
    context.set_output(0, std::move(type));
    fold_data(context);
}

template <size_t width>
void select(BroadcastRows rows, const uint8_t* condition, const std::byte* x, const std::byte* y,
            std::byte* out) {
    for (int64_t row = 0; row < rows.count(); ++row, rows.next()) {
        for (int64_t i = 0; i < rows.length(); ++i, out += width) {
            const bool first = condition[rows.offset(0) + i * rows.step(0)] != 0;
            const std::byte* from =
                first ? x + (rows.offset(1) + i * rows.step(1)) * static_cast<int64_t>(width)
                      : y + (rows.offset(2) + i * rows.step(2)) * static_cast<int64_t>(width);
            std::memcpy(out, from, width);
        }
    }
}

void kernel(KernelContext& context) {
    const Tensor& condition = context.input(0);
    require(condition.dtype() == DType::boolean, "the condition must be bool, not {}",
            name(condition.dtype()));
    const Shape& x = context.input(1).shape();
    const Shape& y = context.input(2).shape();
    const Shape shape = broadcast(broadcast(condition.shape(), x), y);
    ElementMove move(context, {context.input(1), context.input(2)});
    std::byte* out = move.target(0, shape);
    const BroadcastRows rows({condition.shape(), x, y}, shape);
    const auto* mask = static_cast<const uint8_t*>(condition.raw());
    const auto run = move.width() == 1   ? select<1>
                     : move.width() == 2 ? select<2>
                     : move.width() == 4 ? select<4>
                     : move.width() == 8 ? select<8>
                                         : select<16>;
    run(rows, mask, move.source(0), move.source(1), out);
    move.finish();
}

KILTER_OP({.name = "Where", .min_inputs = 3, .max_inputs = 3, .infer = infer, .kernel = kernel});

}  // namespace kilter::where_op
