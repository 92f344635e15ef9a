// Shape and Size: the dimensions of a tensor, and their product.
#include <algorithm>

#include "ops/op.h"
#include "ops/shape_data.h"

namespace kilter::shape_op {

struct Range {
    int64_t begin, end;
};

// `start` and `end` count from the back when negative and are clamped.
Range range_of(const Attributes& attributes, int64_t rank) {
    const auto clamped = [&](int64_t axis) {
        return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
    };
    const int64_t begin = clamped(attributes.get_int("start", 0));
    const int64_t end = clamped(attributes.get_int("end", rank));
    return {begin, std::max(begin, end)};
}

void infer_shape(InferContext& context) {
    const int rank = context.rank(0);
    if (rank < 0) return context.set_output(0, DType::i64, {Dim()});
    const Range range = range_of(context.attributes(), rank);
    context.set_output(0, DType::i64, {Dim(range.end - range.begin)});
    Dims data;
    for (int64_t i = range.begin; i < range.end; ++i)
        data.push_back(data_entry((*context.shape(0))[static_cast<size_t>(i)]));
    context.set_shape_data(0, std::move(data));
}

void shape(KernelContext& context) {
    const Tensor& x = context.input(0);
    const Range range = range_of(context.attributes(), x.rank());
    Tensor& y = context.output(0, DType::i64, {range.end - range.begin});
    std::copy(x.shape().begin() + range.begin, x.shape().begin() + range.end,
              y.as_mutable<int64_t>().begin());
}

void infer_size(InferContext& context) {
    context.set_output(0, DType::i64, {});
    if (!context.shape(0)) return;
    if (const std::optional<Dim> count = dim_quotient(*context.shape(0), {}))
        context.set_shape_data(0, {data_entry(*count)});
}

void size(KernelContext& context) {
    context.output(0, DType::i64, {}).as_mutable<int64_t>()[0] = context.input(0).size();
}

KILTER_OP({.name = "Shape",
           .attributes = {{"start", AttributeKind::integer}, {"end", AttributeKind::integer}},
           .infer = infer_shape,
           .kernel = shape});
KILTER_OP({.name = "Size", .infer = infer_size, .kernel = size});

}  // namespace kilter::shape_op
