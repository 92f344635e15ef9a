// Det: determinants of square matrices, by elimination with pivots.
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/op.h"

namespace kilter::det_op {

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    if (!x) return context.set_output(0, context.dtype(0));
    require(x->size() >= 2, "expected matrices, found {}", to_string(*x));
    context.set_output(0, context.dtype(0), Dims(x->begin(), x->end() - 2));
}

double determinant(std::vector<double> a, size_t n) {
    double product = 1;
    for (size_t column = 0; column < n; ++column) {
        size_t pivot = column;
        for (size_t row = column + 1; row < n; ++row)
            if (std::fabs(a[row * n + column]) > std::fabs(a[pivot * n + column])) pivot = row;
        if (a[pivot * n + column] == 0) return 0;
        if (pivot != column) {
            for (size_t k = 0; k < n; ++k) std::swap(a[pivot * n + k], a[column * n + k]);
            product = -product;
        }
        product *= a[column * n + column];
        for (size_t row = column + 1; row < n; ++row) {
            const double factor = a[row * n + column] / a[column * n + column];
            for (size_t k = column; k < n; ++k) a[row * n + k] -= factor * a[column * n + k];
        }
    }
    return product;
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    require(x.rank() >= 2 && x.dim(-1) == x.dim(-2) && is_float(x.dtype()),
            "expected square matrices, found {}", to_string(x.shape()));
    const auto n = static_cast<size_t>(x.dim(-1));
    Tensor& y = context.output(0, x.dtype(), Shape(x.shape().begin(), x.shape().end() - 2));
    for (int64_t i = 0; i < y.size(); ++i) {
        std::vector<double> matrix(n * n);
        for (size_t k = 0; k < matrix.size(); ++k)
            matrix[k] =
                load_double(x.dtype(), x.raw(), i * static_cast<int64_t>(n * n) + static_cast<int64_t>(k));
        store_double(y.dtype(), y.raw_mutable(), i, determinant(std::move(matrix), n));
    }
}

KILTER_OP({.name = "Det", .infer = infer, .kernel = kernel});

}  // namespace kilter::det_op
