// kilter.QLookup: y = table[x] for 8-bit x. Every function of one quantized value that is quantized again, be it an
// activation or a change of scale, is such a table: computed once, exact by construction.
#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::q_lookup_op {

void infer(InferContext& context) {
    ValueType type = context.input(0);
    type.dtype = context.dtype(1);
    context.set_output(0, std::move(type));
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const Tensor& table = needed(context, 1, "the table");
    require(bits(x.dtype()) == 8 && bits(table.dtype()) == 8 && table.size() == 256,
            "a table of 256 bytes looks up bytes, found {} of {} for {}", table.size(), name(table.dtype()),
            name(x.dtype()));
    Tensor& y = context.output(0, table.dtype(), x.shape());
    const auto* from = static_cast<const uint8_t*>(x.raw());
    const auto* entries = static_cast<const uint8_t*>(table.raw());
    auto* to = static_cast<uint8_t*>(y.raw_mutable());
    for (int64_t i = 0; i < x.size(); ++i) to[i] = entries[from[i]];
}

KILTER_OP({.name = "QLookup",
           .domain = kKilterDomain,
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::q_lookup_op
