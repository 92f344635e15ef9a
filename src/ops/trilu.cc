// Trilu: keeps the upper or lower triangle of matrices, zero elsewhere; k moves the diagonal.
#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "ops/movement.h"

namespace kilter::trilu_op {

void infer(InferContext& context) {
    require(context.rank(0) < 0 || context.rank(0) >= 2, "expected matrices, found a tensor of rank {}",
            context.rank(0));
    context.same_as_input();
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    require(x.rank() >= 2, "expected matrices, found a tensor of rank {}", x.rank());
    const bool upper = context.attributes().get_int("upper", 1) != 0;
    const int64_t rows = x.dim(-2);
    const int64_t columns = x.dim(-1);
    int64_t k = 0;
    if (context.has_input(1)) {
        const std::vector<int64_t> numbers = context.input(1).to_ints();
        require(numbers.size() == 1, "k must be one number, not {}", numbers.size());
        k = std::clamp(numbers[0], -rows, columns);  // further away nothing changes
    }
    ElementMove move(context, {x});
    std::byte* y = move.target(0, x.shape());
    const std::byte* from = move.source();
    for (int64_t row = 0; columns > 0 && row < x.size() / columns; ++row) {
        // The kept part of a row is one run.
        const int64_t diagonal = row % rows + k;
        const int64_t begin = upper ? std::clamp<int64_t>(diagonal, 0, columns) : 0;
        const int64_t end = upper ? columns : std::clamp<int64_t>(diagonal + 1, 0, columns);
        std::memset(y, 0, static_cast<size_t>(columns) * move.width());
        std::memcpy(y + static_cast<size_t>(begin) * move.width(),
                    from + static_cast<size_t>(begin) * move.width(),
                    static_cast<size_t>(end - begin) * move.width());
        y += static_cast<size_t>(columns) * move.width();
        from += static_cast<size_t>(columns) * move.width();
    }
    move.finish();
}

KILTER_OP({.name = "Trilu",
           .min_inputs = 1,
           .max_inputs = 2,
           .attributes = {{"upper", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::trilu_op
