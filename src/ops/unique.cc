// Unique: the distinct elements (or slices along an axis), where each was first, which one each input is,
// and how often.
#include <algorithm>
#include <numeric>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/op.h"

namespace kilter::unique_op {

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    ValueType values;
    values.dtype = context.dtype(0);
    if (!context.attributes().has("axis")) {
        values.shape = Dims{Dim()};
    } else if (x) {
        require(!x->empty(), "a scalar has no axis");
        values.shape = *x;
        (*values.shape)[static_cast<size_t>(
            normalize_axis(context.attributes().get_int("axis"), context.rank(0)))] = Dim();
    }
    context.set_output(0, std::move(values));
    for (const size_t output : {1, 2, 3}) context.set_output(output, DType::i64, {Dim()});
}

// Slices along one axis, compared element by element.
class Slices {
  public:
    Slices(const Tensor& x, size_t axis) : x_(x) {
        const std::span<const int64_t> shape(x.shape());
        outer_ = element_count(shape.first(axis));
        count_ = shape[axis];
        inner_ = element_count(shape.subspan(axis + 1));
    }

    int64_t count() const { return count_; }

    // Negative, zero or positive, as the slice `a` is before, like or after `b`.
    int compare(int64_t a, int64_t b) const {
        for (int64_t i = 0; i < outer_ * inner_; ++i) {
            const int order = compare_elements(offset(i, a), offset(i, b));
            if (order != 0) return order;
        }
        return 0;
    }

    void copy(int64_t from, Tensor& target, int64_t to, int64_t target_count) const {
        for (int64_t i = 0; i < outer_ * inner_; ++i) {
            const int64_t at = (i / inner_ * target_count + to) * inner_ + i % inner_;
            if (x_.dtype() == DType::string)
                target.as_strings_mutable()[static_cast<size_t>(at)] =
                    x_.as_strings()[static_cast<size_t>(offset(i, from))];
            else if (is_integer(x_.dtype()))
                store_int(x_.dtype(), target.raw_mutable(), at,
                          load_int(x_.dtype(), x_.raw(), offset(i, from)));
            else
                store_double(x_.dtype(), target.raw_mutable(), at,
                             load_double(x_.dtype(), x_.raw(), offset(i, from)));
        }
    }

  private:
    int64_t offset(int64_t i, int64_t slice) const {
        return (i / inner_ * count_ + slice) * inner_ + i % inner_;
    }

    int compare_elements(int64_t a, int64_t b) const {
        const auto order = [](const auto& left, const auto& right) {
            return left < right ? -1 : right < left ? 1 : 0;
        };
        if (x_.dtype() == DType::string)
            return order(x_.as_strings()[static_cast<size_t>(a)], x_.as_strings()[static_cast<size_t>(b)]);
        if (x_.dtype() == DType::u64)
            return order(static_cast<uint64_t>(load_int(x_.dtype(), x_.raw(), a)),
                         static_cast<uint64_t>(load_int(x_.dtype(), x_.raw(), b)));
        if (is_integer(x_.dtype()))
            return order(load_int(x_.dtype(), x_.raw(), a), load_int(x_.dtype(), x_.raw(), b));
        const double left = load_double(x_.dtype(), x_.raw(), a);
        const double right = load_double(x_.dtype(), x_.raw(), b);
        if (left != left || right != right)
            return (left != left ? 1 : 0) - (right != right ? 1 : 0);  // NaN goes last
        return order(left, right);
    }

    const Tensor& x_;
    int64_t outer_, count_, inner_;
};

void kernel(KernelContext& context) {
    const bool flat = !context.attributes().has("axis");
    const Tensor x = flat ? context.input(0).reshaped({context.input(0).size()}) : context.input(0);
    require(x.rank() > 0, "a scalar has no axis");
    const size_t axis =
        flat ? 0 : static_cast<size_t>(normalize_axis(context.attributes().get_int("axis"), x.rank()));
    const Slices slices(x, axis);
    std::vector<int64_t> order(static_cast<size_t>(slices.count()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return slices.compare(a, b) < 0; });
    std::vector<int64_t> firsts;
    std::vector<int64_t> counts;
    std::vector<int64_t> which(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || slices.compare(order[i - 1], order[i]) != 0) {
            firsts.push_back(order[i]);  // the sort is stable, so this is its first place
            counts.push_back(0);
        }
        ++counts.back();
        which[static_cast<size_t>(order[i])] = static_cast<int64_t>(firsts.size()) - 1;
    }
    const auto found = static_cast<int64_t>(firsts.size());
    std::vector<int64_t> rank(firsts.size());  // group in sorted order -> group in the order of the output
    std::iota(rank.begin(), rank.end(), 0);
    if (context.attributes().get_int("sorted", 1) == 0) {
        std::vector<int64_t> by_place(rank);
        std::ranges::sort(by_place, {}, [&](int64_t group) { return firsts[static_cast<size_t>(group)]; });
        for (int64_t i = 0; i < found; ++i) rank[static_cast<size_t>(by_place[static_cast<size_t>(i)])] = i;
    }
    Shape shape = x.shape();
    shape[axis] = found;
    Tensor values(x.dtype(), shape);
    Tensor places(DType::i64, {found});
    Tensor frequencies(DType::i64, {found});
    for (size_t group = 0; group < firsts.size(); ++group) {
        slices.copy(firsts[group], values, rank[group], found);
        places.as_mutable<int64_t>()[static_cast<size_t>(rank[group])] = firsts[group];
        frequencies.as_mutable<int64_t>()[static_cast<size_t>(rank[group])] = counts[group];
    }
    for (int64_t& group : which) group = rank[static_cast<size_t>(group)];
    context.set_output(0, std::move(values));
    context.set_output(1, std::move(places));
    context.set_output(2, Tensor::of<int64_t>({slices.count()}, which));
    context.set_output(3, std::move(frequencies));
}

KILTER_OP({.name = "Unique",
           .max_outputs = 4,
           .attributes = {{"axis", AttributeKind::integer}, {"sorted", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::unique_op
