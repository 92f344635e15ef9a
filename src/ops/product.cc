#include "ops/product.h"

#include <algorithm>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/numeric.h"

namespace kilter {
namespace {

// c += a·b. Four rows of `a` share each row of `b`, which is read in order.
template <class T>
void multiply_rows(const T* a, const T* b, T* c, int64_t rows, int64_t inner, int64_t columns) {
    if (rows == 4) {
        for (int64_t k = 0; k < inner; ++k) {
            const T a0 = a[k], a1 = a[inner + k], a2 = a[2 * inner + k], a3 = a[3 * inner + k];
            const T* row = b + k * columns;
            for (int64_t j = 0; j < columns; ++j) {
                c[j] += a0 * row[j];
                c[columns + j] += a1 * row[j];
                c[2 * columns + j] += a2 * row[j];
                c[3 * columns + j] += a3 * row[j];
            }
        }
        return;
    }
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; k < inner; ++k)
            for (int64_t j = 0; j < columns; ++j) c[i * columns + j] += a[i * inner + k] * b[k * columns + j];
}

template <class T>
Tensor multiply(const Tensor& a, const Tensor& b) {
    const Dims dims = product_dims(to_dims(a.shape()), to_dims(b.shape()));
    Tensor c(a.dtype(), ValueType(a.dtype(), dims).static_shape());
    std::ranges::fill(c.as_mutable<T>(), T{0});
    if (c.size() == 0) return c;
    const int64_t rows = a.rank() == 1 ? 1 : a.dim(-2);
    const int64_t inner = a.dim(-1);
    const int64_t columns = b.rank() == 1 ? 1 : b.dim(-1);
    const auto batch_of = [](const Tensor& t) {
        return t.rank() <= 2 ? Shape() : Shape(t.shape().begin(), t.shape().end() - 2);
    };
    const Shape batch = broadcast(batch_of(a), batch_of(b));
    const int64_t matrices = element_count(batch);
    std::vector<std::pair<int64_t, int64_t>> offsets;  // of the matrices of each product
    BroadcastIndex a_index(batch_of(a), batch), b_index(batch_of(b), batch);
    for (int64_t i = 0; i < matrices; ++i, a_index.next(), b_index.next())
        offsets.emplace_back(a_index.offset() * rows * inner, b_index.offset() * inner * columns);
    const T* left = a.as<T>().data();
    const T* right = b.as<T>().data();
    T* result = c.as_mutable<T>().data();
    constexpr int64_t kRows = 4;
    const int64_t blocks = (rows + kRows - 1) / kRows;
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < matrices * blocks; ++task) {
        const int64_t matrix = task / blocks;
        const int64_t first = task % blocks * kRows;
        const auto& [a_offset, b_offset] = offsets[static_cast<size_t>(matrix)];
        multiply_rows(left + a_offset + first * inner, right + b_offset,
                      result + (matrix * rows + first) * columns, std::min(kRows, rows - first), inner,
                      columns);
    }
    return c;
}

}  // namespace

Dims product_dims(const Dims& a, const Dims& b) {
    require(!a.empty() && !b.empty(), "a matrix product needs operands of rank 1 or more, found {} and {}",
            to_string(a), to_string(b));
    const Dim& left = a.back();
    const Dim& right = b.size() == 1 ? b[0] : b[b.size() - 2];
    require(agree(left, right), "cannot multiply {} by {}: inner dimensions {} and {} differ", to_string(a),
            to_string(b), to_string(left), to_string(right));
    const auto batch_of = [](const Dims& dims) {
        return dims.size() <= 2 ? Dims() : Dims(dims.begin(), dims.end() - 2);
    };
    Dims result = broadcast(batch_of(a), batch_of(b));
    if (a.size() > 1) result.push_back(a[a.size() - 2]);
    if (b.size() > 1) result.push_back(b.back());
    return result;
}

Dims transposed_dims(const Dims& dims, std::string_view what) {
    require(dims.size() >= 2, "{} must have rank 2 or more, found {}", what, to_string(dims));
    Dims result = dims;
    std::swap(result[dims.size() - 1], result[dims.size() - 2]);
    return result;
}

Tensor product(const Tensor& a, const Tensor& b) {
    return a.dtype() == DType::u64 ? multiply<uint64_t>(a, b) : multiply<double>(a, b);
}

Tensor transposed(const Tensor& tensor, std::string_view what) {
    Tensor result(DType::f64,
                  ValueType(DType::f64, transposed_dims(to_dims(tensor.shape()), what)).static_shape());
    const int64_t rows = tensor.dim(-2);
    const int64_t columns = tensor.dim(-1);
    const std::span<const double> from = tensor.as<double>();
    const std::span<double> to = result.as_mutable<double>();
    for (int64_t base = 0; base < tensor.size(); base += rows * columns)
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
                to[static_cast<size_t>(base + j * rows + i)] =
                    from[static_cast<size_t>(base + i * columns + j)];
    return result;
}

Tensor to_words(const Tensor& tensor) {
    Tensor words(DType::u64, tensor.shape());
    const std::span<uint64_t> values = words.as_mutable<uint64_t>();
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<uint64_t>(load_int(tensor.dtype(), tensor.raw(), static_cast<int64_t>(i)));
    return words;
}

void store_words(KernelContext& context, size_t index, DType dtype, const Tensor& words) {
    Tensor& result = context.output(index, dtype, words.shape());
    const std::span<const uint64_t> values = words.as<uint64_t>();
    for (size_t i = 0; i < values.size(); ++i)
        store_int(dtype, result.raw_mutable(), static_cast<int64_t>(i), static_cast<int64_t>(values[i]));
}

}  // namespace kilter
