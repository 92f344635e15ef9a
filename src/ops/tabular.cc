// ArrayFeatureExtractor and Binarizer (ai.onnx.ml): columns of a table, and numbers against a threshold.
#include <cstring>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/movement.h"

namespace kilter::tabular_op {

constexpr std::string_view kDomain = "ai.onnx.ml";

void infer_columns(InferContext& context) {
    if (!context.shape(0) || !context.shape(1)) return context.set_output(0, context.dtype(0));
    Dims shape = *context.shape(0);
    require(!shape.empty(), "a scalar has no columns");
    Dim count(1);
    for (const Dim& dim : *context.shape(1))
        count = count.known() && dim.known() ? Dim(count.value * dim.value) : Dim();
    if (shape.size() == 1) shape.insert(shape.begin(), Dim(1));  // a list is a table of one row
    shape.back() = count;
    context.set_output(0, context.dtype(0), std::move(shape));
}

void columns(KernelContext& context) {
    const Tensor& x = context.input(0);
    require(x.rank() > 0, "a scalar has no columns");
    const std::vector<int64_t> chosen = context.input(1).to_ints();
    const int64_t width = x.dim(-1);
    for (const int64_t column : chosen)
        require(column >= 0 && column < width, "column {} of a table with {}", column, width);
    Shape shape = x.shape();
    if (shape.size() == 1) shape.insert(shape.begin(), 1);
    shape.back() = static_cast<int64_t>(chosen.size());
    ElementMove move(context, {x});
    std::byte* to = move.target(0, shape);
    for (int64_t row = 0; row < (width == 0 ? 0 : x.size() / width); ++row)
        for (const int64_t column : chosen) {
            std::memcpy(to, move.source() + static_cast<size_t>(row * width + column) * move.width(),
                        move.width());
            to += move.width();
        }
    move.finish();
}

void infer_same(InferContext& context) { context.same_as_input(); }

void binarize(KernelContext& context) {
    const Tensor& x = context.input(0);
    const double threshold = context.attributes().get_float("threshold", 0);
    Tensor& y = context.output(0, x.dtype(), x.shape());
    for (int64_t i = 0; i < x.size(); ++i)
        store_double(y.dtype(), y.raw_mutable(), i, load_double(x.dtype(), x.raw(), i) > threshold ? 1 : 0);
}

KILTER_OP({.name = "ArrayFeatureExtractor",
           .domain = kDomain,
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_columns,
           .kernel = columns});
KILTER_OP({.name = "Binarizer",
           .domain = kDomain,
           .attributes = {{"threshold", AttributeKind::real}},
           .infer = infer_same,
           .kernel = binarize});

}  // namespace kilter::tabular_op
