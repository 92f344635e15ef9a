// TensorScatter: writes new steps into a cache along one axis, from a position per batch entry;
// `circular` wraps around.
#include <cstring>

#include "base/fail.h"
#include "ops/movement.h"

namespace kilter::tensor_scatter_op {

void infer(InferContext& context) { context.same_as_input(); }

void kernel(KernelContext& context) {
    const Tensor& cache = context.input(0);
    const Tensor& update = context.input(1);
    const std::string mode = context.attributes().get_string("mode", "linear");
    require(mode == "linear" || mode == "circular", "mode must be 'linear' or 'circular', not '{}'", mode);
    require(cache.rank() >= 2 && cache.rank() == update.rank(), "a cache of rank {} and an update of rank {}",
            cache.rank(), update.rank());
    const auto axis =
        static_cast<size_t>(normalize_axis(context.attributes().get_int("axis", -2), cache.rank()));
    require(axis > 0, "the sequence axis cannot be the batch axis");
    for (size_t i = 0; i < cache.shape().size(); ++i)
        require(i == axis ? update.shape()[i] <= cache.shape()[i] : update.shape()[i] == cache.shape()[i],
                "an update of {} does not fit a cache of {}", to_string(update.shape()),
                to_string(cache.shape()));
    const int64_t batch = cache.dim(0);
    std::vector<int64_t> starts(static_cast<size_t>(batch), 0);
    if (context.has_input(2)) starts = context.input(2).to_ints();
    require(static_cast<int64_t>(starts.size()) == batch, "{} write indices for a batch of {}", starts.size(),
            batch);
    const std::span<const int64_t> shape(cache.shape());
    const int64_t longest = shape[axis];
    const int64_t steps = update.shape()[axis];
    ElementMove move(context, {cache, update});
    std::byte* y = move.target(0, cache.shape());
    if (cache.size() > 0) std::memcpy(y, move.source(0), static_cast<size_t>(cache.size()) * move.width());
    const size_t run = static_cast<size_t>(element_count(shape.subspan(axis + 1))) * move.width();
    const int64_t rows = element_count(shape.first(axis));
    for (int64_t row = 0; row < rows && run > 0; ++row) {
        const int64_t start = starts[static_cast<size_t>(row / (rows / batch))];
        require(start >= 0 && (mode == "circular" || start <= longest - steps),
                "write index {} is out of range", start);
        for (int64_t step = 0; step < steps; ++step) {
            const int64_t at = (start % longest + step) % longest;
            std::memcpy(y + static_cast<size_t>(row * longest + at) * run,
                        move.source(1) + static_cast<size_t>(row * steps + step) * run, run);
        }
    }
    move.finish();
}

KILTER_OP({.name = "TensorScatter",
           .min_inputs = 2,
           .max_inputs = 3,
           .attributes = {{"axis", AttributeKind::integer}, {"mode", AttributeKind::text}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::tensor_scatter_op
