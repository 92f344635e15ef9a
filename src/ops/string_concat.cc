// StringConcat: strings joined element by element, with broadcasting.
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/movement.h"

namespace kilter::string_concat_op {

void infer(InferContext& context) {
    ValueType type;
    type.dtype = DType::string;
    type.shape = broadcast_inputs(context);
    context.set_output(0, std::move(type));
}

void kernel(KernelContext& context) {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(1);
    const Shape shape = broadcast(a.shape(), b.shape());
    const std::vector<std::string>& left = a.as_strings();
    const std::vector<std::string>& right = b.as_strings();
    require_reasonable_size(DType::string, shape);
    Tensor& y = context.output(0, DType::string, shape);
    BroadcastIndex from_left(a.shape(), shape);
    BroadcastIndex from_right(b.shape(), shape);
    for (std::string& text : y.as_strings_mutable()) {
        text =
            left[static_cast<size_t>(from_left.offset())] + right[static_cast<size_t>(from_right.offset())];
        from_left.next();
        from_right.next();
    }
}

KILTER_OP({.name = "StringConcat", .min_inputs = 2, .max_inputs = 2, .infer = infer, .kernel = kernel});

}  // namespace kilter::string_concat_op
