// ReverseSequence: turns around the first sequence_lens[b] steps of each sequence of a batch.
#include <cstring>

#include "base/fail.h"
#include "ops/movement.h"

namespace kilter::reverse_sequence_op {

void infer(InferContext& context) {
    require(context.rank(0) < 0 || context.rank(0) >= 2, "expected at least two dimensions, found {}",
            context.rank(0));
    context.same_as_input();
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    require(x.rank() >= 2, "expected at least two dimensions, found {}", x.rank());
    const int64_t time_axis = context.attributes().get_int("time_axis", 0);
    const int64_t batch_axis = context.attributes().get_int("batch_axis", 1);
    require((time_axis == 0 && batch_axis == 1) || (time_axis == 1 && batch_axis == 0),
            "time_axis and batch_axis must be 0 and 1, not {} and {}", time_axis, batch_axis);
    const int64_t steps = x.dim(static_cast<int>(time_axis));
    const int64_t batch = x.dim(static_cast<int>(batch_axis));
    const std::vector<int64_t> lengths = context.input(1).to_ints();
    require(static_cast<int64_t>(lengths.size()) == batch, "{} lengths for a batch of {}", lengths.size(),
            batch);
    ElementMove move(context, {x});
    std::byte* y = move.target(0, x.shape());
    const size_t run = static_cast<size_t>(element_count(std::span(x.shape()).subspan(2))) * move.width();
    for (int64_t b = 0; b < batch; ++b) {
        const int64_t length = lengths[static_cast<size_t>(b)];
        require(length >= 0 && length <= steps, "a length of {} in sequences of {} steps", length, steps);
        for (int64_t t = 0; t < steps && run > 0; ++t) {
            const int64_t from = t < length ? length - 1 - t : t;
            const auto at = [&](int64_t step) {
                return static_cast<size_t>(time_axis == 0 ? step * batch + b : b * steps + step) * run;
            };
            std::memcpy(y + at(t), move.source() + at(from), run);
        }
    }
    move.finish();
}

KILTER_OP({.name = "ReverseSequence",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"batch_axis", AttributeKind::integer}, {"time_axis", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::reverse_sequence_op
