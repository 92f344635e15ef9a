// ArgMax and ArgMin: the position of the extreme element along one axis.
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/op.h"

namespace kilter::arg_reduce_op {

size_t axis_of(const Attributes& attributes, int64_t rank) {
    require(rank > 0, "a scalar has no axis to search");
    return static_cast<size_t>(normalize_axis(attributes.get_int("axis", 0), rank));
}

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    if (!x) return context.set_output(0, DType::i64);
    const size_t axis = axis_of(context.attributes(), context.rank(0));
    Dims shape = *x;
    require(!shape[axis].known() || shape[axis].value > 0, "dimension {} is empty", axis);
    if (context.attributes().get_int("keepdims", 1) != 0)
        shape[axis] = 1;
    else
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    context.set_output(0, DType::i64, std::move(shape));
}

// Is `a` to be preferred over `b`? NaN counts as the extreme in both directions, as in NumPy.
template <class T>
bool better(T a, T b, bool max) {
    if (a != a || b != b) return a != a && b == b;
    return max ? a > b : a < b;
}

template <class T>
void search(const Tensor& x, size_t axis, bool max, bool last, Tensor& y,
            T (*load)(DType, const void*, int64_t)) {
    const std::span<const int64_t> shape(x.shape());
    const int64_t inner = element_count(shape.subspan(axis + 1));
    const int64_t extent = shape[axis];
    const std::span<int64_t> found = y.as_mutable<int64_t>();
    for (int64_t i = 0; i < y.size(); ++i) {
        const int64_t base = i / inner * extent * inner + i % inner;
        int64_t best = 0;
        T value = load(x.dtype(), x.raw(), base);
        for (int64_t k = 1; k < extent; ++k) {
            const T next = load(x.dtype(), x.raw(), base + k * inner);
            if (!better(next, value, max) && !(last && next == value)) continue;
            best = k;
            value = next;
        }
        found[static_cast<size_t>(i)] = best;
    }
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const size_t axis = axis_of(context.attributes(), x.rank());
    require(x.shape()[axis] > 0, "dimension {} is empty", axis);
    Shape shape = x.shape();
    if (context.attributes().get_int("keepdims", 1) != 0)
        shape[axis] = 1;
    else
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    Tensor& y = context.output(0, DType::i64, shape);
    const bool max = context.node().op() == "ArgMax";
    const bool last = context.attributes().get_int("select_last_index", 0) != 0;
    if (is_integer(x.dtype()) && x.dtype() != DType::u64)
        search<int64_t>(x, axis, max, last, y, load_int);
    else
        search<double>(x, axis, max, last, y, load_double);
}

const std::vector<AttributeSpec> kAttributes{{"axis", AttributeKind::integer},
                                             {"keepdims", AttributeKind::integer},
                                             {"select_last_index", AttributeKind::integer}};

KILTER_OP({.name = "ArgMax", .attributes = kAttributes, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "ArgMin", .attributes = kAttributes, .infer = infer, .kernel = kernel});

}  // namespace kilter::arg_reduce_op
