// Reductions over some axes: ReduceSum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp, SumSquare.
// `axes` is an input; without it all axes are reduced, or none with noop_with_empty_axes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/op.h"
#include "ops/shape_data.h"

namespace kilter::reduce_op {

using Offsets = std::vector<int64_t>;

std::optional<std::vector<bool>> reduced_axes(const Attributes& attributes,
                                              const std::optional<std::vector<int64_t>>& axes, int64_t rank) {
    if (!axes || axes->empty()) {
        if (attributes.get_int("noop_with_empty_axes", 0) != 0) return std::nullopt;
        return std::vector<bool>(static_cast<size_t>(rank), true);
    }
    std::vector<bool> reduced(static_cast<size_t>(rank), false);
    for (const int64_t axis : *axes) {
        require(axis >= -rank && axis < rank, "axis {} is out of range for rank {}", axis, rank);
        reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
    }
    return reduced;
}

template <class Dimension>
std::vector<Dimension> reduced_shape(const std::vector<Dimension>& x, const std::vector<bool>& reduced,
                                     bool keep) {
    std::vector<Dimension> shape;
    for (size_t i = 0; i < x.size(); ++i) {
        if (!reduced[i])
            shape.push_back(x[i]);
        else if (keep)
            shape.emplace_back(1);
    }
    return shape;
}

bool keeps_dims(const Attributes& attributes) { return attributes.get_int("keepdims", 1) != 0; }

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    const bool given = context.has_input(1);
    const auto axes = given ? context.ints(1) : std::nullopt;
    if (!x) return context.set_output(0, context.dtype(0));
    if (given && !axes) {
        // Unknown axes: with keepdims the rank stays.
        if (!keeps_dims(context.attributes())) return context.set_output(0, context.dtype(0));
        return context.set_output(0, context.dtype(0), Dims(x->size()));
    }
    const auto reduced = reduced_axes(context.attributes(), axes, context.rank(0));
    if (!reduced) return context.same_as_input();
    const Dims shape = reduced_shape(*x, *reduced, keeps_dims(context.attributes()));
    context.set_output(0, context.dtype(0), shape);
    // The number of elements of a shape.
    const std::optional<Dims> data = context.shape_data(0);
    if (!context.node().is("ReduceProd") || !data || shape.size() > 1) return;
    if (const std::optional<Dim> product = dim_quotient(*data, {})) context.set_shape_data(0, {*product});
}

// Offsets of all positions along the chosen axes.
Offsets offsets_along(const Shape& shape, const std::vector<bool>& chosen, bool which) {
    const Shape strides = row_major_strides(shape);
    Offsets offsets{0};
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (chosen[axis] != which) continue;
        Offsets longer;
        longer.reserve(offsets.size() * static_cast<size_t>(shape[axis]));
        for (const int64_t offset : offsets)
            for (int64_t i = 0; i < shape[axis]; ++i) longer.push_back(offset + i * strides[axis]);
        offsets = std::move(longer);
    }
    return offsets;
}

struct Reduction {
    std::string_view name;
    double start;
    double (*step)(double total, double x);
    double (*finish)(double total, double count);
};

double keep(double total, double /*count*/) { return total; }

const std::array kReductions{
    Reduction{"ReduceSum", 0, [](double total, double x) { return total + x; }, keep},
    Reduction{"ReduceMean", 0, [](double total, double x) { return total + x; },
              [](double total, double count) { return total / count; }},
    Reduction{"ReduceMax", -std::numeric_limits<double>::infinity(),
              [](double total, double x) { return std::isnan(x) || x > total ? x : total; }, keep},
    Reduction{"ReduceMin", std::numeric_limits<double>::infinity(),
              [](double total, double x) { return std::isnan(x) || x < total ? x : total; }, keep},
    Reduction{"ReduceProd", 1, [](double total, double x) { return total * x; }, keep},
    Reduction{"ReduceL1", 0, [](double total, double x) { return total + std::fabs(x); }, keep},
    Reduction{"ReduceL2", 0, [](double total, double x) { return total + x * x; },
              [](double total, double /*count*/) { return std::sqrt(total); }},
    Reduction{"ReduceSumSquare", 0, [](double total, double x) { return total + x * x; }, keep},
    Reduction{"ReduceLogSum", 0, [](double total, double x) { return total + x; },
              [](double total, double /*count*/) { return std::log(total); }},
};

const Reduction& reduction(std::string_view name) {
    return *std::ranges::find_if(kReductions, [&](const Reduction& entry) { return entry.name == name; });
}

double reduce_reals(const Reduction& op, const Tensor& x, int64_t base, const Offsets& offsets) {
    double total = op.start;
    for (const int64_t offset : offsets)
        total = op.step(total, load_double(x.dtype(), x.raw(), base + offset));
    return op.finish(total, static_cast<double>(offsets.size()));
}

// The largest element is taken out of the sum, so that it cannot overflow.
double log_sum_exp(const Tensor& x, int64_t base, const Offsets& offsets) {
    const double top = reduce_reals(reduction("ReduceMax"), x, base, offsets);
    if (std::isinf(top) || std::isnan(top)) return top;
    double total = 0;
    for (const int64_t offset : offsets)
        total += std::exp(load_double(x.dtype(), x.raw(), base + offset) - top);
    return top + std::log(total);
}

// Integers are exact (and wrap) where a double would round.
int64_t reduce_integers(std::string_view op, const Tensor& x, int64_t base, const Offsets& offsets) {
    const bool natural = x.dtype() == DType::u64;
    const auto less = [&](int64_t a, int64_t b) {
        return natural ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
    };
    uint64_t total = op == "ReduceProd" ? 1 : 0;
    bool first = true;
    for (const int64_t offset : offsets) {
        const int64_t value = load_int(x.dtype(), x.raw(), base + offset);
        const auto bits = static_cast<uint64_t>(value);
        if (op == "ReduceProd")
            total *= bits;
        else if (op == "ReduceMax")
            total = first || less(static_cast<int64_t>(total), value) ? bits : total;
        else if (op == "ReduceMin")
            total = first || less(value, static_cast<int64_t>(total)) ? bits : total;
        else if (op == "ReduceSumSquare")
            total += bits * bits;
        else if (op == "ReduceL1")
            total += !natural && value < 0 ? -bits : bits;
        else
            total += bits;
        first = false;
    }
    if (op == "ReduceMean" && !offsets.empty())
        return natural ? static_cast<int64_t>(total / offsets.size())
                       : static_cast<int64_t>(total) / static_cast<int64_t>(offsets.size());
    return static_cast<int64_t>(total);
}

// Extreme of nothing: the value that any element would replace.
void store_extreme_of_nothing(Tensor& y, int64_t index, bool max) {
    const DType dtype = y.dtype();
    const double infinity = std::numeric_limits<double>::infinity();
    if (!is_integer(dtype) && dtype != DType::boolean)
        return store_double(dtype, y.raw_mutable(), index, max ? -infinity : infinity);
    if (dtype == DType::boolean || !is_signed(dtype))
        return store_int(dtype, y.raw_mutable(), index, max ? 0 : -1);
    const int64_t lowest = -(int64_t{1} << (bits(dtype) - 2)) * 2;
    store_int(dtype, y.raw_mutable(), index, max ? lowest : ~lowest);
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const std::string& op = context.node().op();
    const bool integers = is_integer(x.dtype()) || x.dtype() == DType::boolean;
    require(integers || is_float(x.dtype()), "{} is not defined for elements of {}", op, name(x.dtype()));
    std::optional<std::vector<int64_t>> axes;
    if (context.has_input(1)) axes = context.input(1).to_ints();
    // With nothing to reduce, each element is still its own sum, square or logarithm.
    const std::vector<bool> reduced = reduced_axes(context.attributes(), axes, x.rank())
                                          .value_or(std::vector<bool>(x.shape().size(), false));
    Tensor& y =
        context.output(0, x.dtype(), reduced_shape(x.shape(), reduced, keeps_dims(context.attributes())));
    if (y.size() == 0) return;
    const Offsets kept = offsets_along(x.shape(), reduced, false);
    const Offsets inner = offsets_along(x.shape(), reduced, true);
    const bool exact = integers && op != "ReduceL2" && op != "ReduceLogSum" && op != "ReduceLogSumExp";
    for (int64_t i = 0; i < y.size(); ++i) {
        const int64_t base = kept[static_cast<size_t>(i)];
        if (inner.empty() && (op == "ReduceMax" || op == "ReduceMin"))
            store_extreme_of_nothing(y, i, op == "ReduceMax");
        else if (exact)
            store_int(y.dtype(), y.raw_mutable(), i, reduce_integers(op, x, base, inner));
        else if (op == "ReduceLogSumExp")
            store_double(y.dtype(), y.raw_mutable(), i, log_sum_exp(x, base, inner));
        else
            store_double(y.dtype(), y.raw_mutable(), i, reduce_reals(reduction(op), x, base, inner));
    }
}

const bool kRegistered = [] {
    for (const std::string_view name :
         {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
          "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"})
        RegisterOp({.name = name,
                    .min_inputs = 1,
                    .max_inputs = 2,
                    .attributes = {{"keepdims", AttributeKind::integer},
                                   {"noop_with_empty_axes", AttributeKind::integer}},
                    .infer = infer,
                    .kernel = kernel});
    return true;
}();

}  // namespace kilter::reduce_op
