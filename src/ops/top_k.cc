// TopK: the k largest (or smallest) elements along an axis and where they are; of equal ones the first
// comes first.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/op.h"
#include "ops/shape_data.h"

namespace kilter::top_k_op {

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    if (!x) {
        context.set_output(0, context.dtype(0));
        return context.set_output(1, DType::i64);
    }
    require(!x->empty(), "a scalar has no axis to search");
    const auto axis =
        static_cast<size_t>(normalize_axis(context.attributes().get_int("axis", -1), context.rank(0)));
    Dims shape = *x;
    const std::optional<Dims> count = context.shape_data(1);
    require(!count || count->size() == 1, "k must be one number");
    const Dim k = count ? (*count)[0] : Dim();
    require(entry_number(k).value_or(0) >= 0, "k must not be negative");
    require(!k.known() || !shape[axis].known() || k.value <= shape[axis].value,
            "k = {} is more than the {} elements there are", k.value, shape[axis].value);
    shape[axis] = k;
    context.set_output(0, context.dtype(0), shape);
    context.set_output(1, DType::i64, std::move(shape));
}

// Elements before which others go, NaN first as the largest; equal ones keep their order.
template <class T>
void pick(std::vector<int64_t>& order, const std::vector<T>& values, size_t k, bool largest) {
    const auto before = [&](int64_t a, int64_t b) {
        const T left = values[static_cast<size_t>(a)];
        const T right = values[static_cast<size_t>(b)];
        const bool left_nan = left != left;
        const bool right_nan = right != right;
        if (left_nan != right_nan) return largest ? left_nan : right_nan;
        if (!left_nan && left != right) return largest ? left > right : left < right;
        return a < b;
    };
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(), before);
}

template <class T>
void search(const Tensor& x, size_t axis, int64_t k, bool largest, T (*load)(DType, const void*, int64_t),
            void (*store)(DType, void*, int64_t, T), Tensor& values, Tensor& indices) {
    const std::span<const int64_t> shape(x.shape());
    const int64_t inner = element_count(shape.subspan(axis + 1));
    const int64_t extent = shape[axis];
    const int64_t outer = element_count(shape.first(axis));
    std::vector<T> run(static_cast<size_t>(extent));
    std::vector<int64_t> order(run.size());
    for (int64_t i = 0; i < outer * inner; ++i) {
        const int64_t base = i / inner * extent * inner + i % inner;
        for (int64_t j = 0; j < extent; ++j)
            run[static_cast<size_t>(j)] = load(x.dtype(), x.raw(), base + j * inner);
        pick(order, run, static_cast<size_t>(k), largest);
        const int64_t target = i / inner * k * inner + i % inner;
        for (int64_t j = 0; j < k; ++j) {
            const int64_t at = order[static_cast<size_t>(j)];
            store(x.dtype(), values.raw_mutable(), target + j * inner, run[static_cast<size_t>(at)]);
            store_int(DType::i64, indices.raw_mutable(), target + j * inner, at);
        }
    }
}

uint64_t load_natural(DType dtype, const void* data, int64_t index) {
    return static_cast<uint64_t>(load_int(dtype, data, index));
}

void store_natural(DType dtype, void* data, int64_t index, uint64_t value) {
    store_int(dtype, data, index, static_cast<int64_t>(value));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    require(x.rank() > 0, "a scalar has no axis to search");
    const auto axis = static_cast<size_t>(normalize_axis(context.attributes().get_int("axis", -1), x.rank()));
    const std::vector<int64_t> count = context.input(1).to_ints();
    require(count.size() == 1 && count[0] >= 0 && count[0] <= x.shape()[axis],
            "k must be one number from 0 to {}", x.shape()[axis]);
    const bool largest = context.attributes().get_int("largest", 1) != 0;
    Shape shape = x.shape();
    shape[axis] = count[0];
    Tensor values(x.dtype(), shape);
    Tensor indices(DType::i64, shape);
    if (x.dtype() == DType::u64)
        search<uint64_t>(x, axis, count[0], largest, load_natural, store_natural, values, indices);
    else if (is_integer(x.dtype()))
        search<int64_t>(x, axis, count[0], largest, load_int, store_int, values, indices);
    else
        search<double>(x, axis, count[0], largest, load_double, store_double, values, indices);
    context.set_output(0, std::move(values));
    context.set_output(1, std::move(indices));
}

KILTER_OP({.name = "TopK",
           .min_inputs = 2,
           .max_inputs = 2,
           .min_outputs = 2,
           .max_outputs = 2,
           .attributes = {{"axis", AttributeKind::integer},
                          {"largest", AttributeKind::integer},
                          {"sorted", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::top_k_op
