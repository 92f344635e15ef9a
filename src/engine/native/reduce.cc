#include "engine/native/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/native/loop.h"
#include "engine/native/math.h"
#include "engine/native/order.h"
#include "ops/broadcast.h"

namespace kilter::engine {
namespace {

// Partial sums in float over this many elements, then in double: as exact as double at the speed of float.
constexpr int64_t kBlock = 256;
// Columns that are accumulated side by side.
constexpr int64_t kColumns = 128;

// The array as two loop nests, over what is kept and over what is reduced, around the innermost axis.
struct Nest {
    Loop kept, reduced;  // without the innermost axis; rows of length 1
    int64_t inner = 1;
    bool inner_reduced = false;
    int64_t count = 1;  // elements per result
};

Nest make_nest(const Shape& shape, const std::vector<bool>& reduced) {
    struct Axis {
        int64_t size, stride;
        bool reduced;
    };
    std::vector<Axis> axes;
    const Shape strides = row_major_strides(shape);
    Nest nest;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 1) continue;
        if (reduced[i]) nest.count *= shape[i];
        if (!axes.empty() && axes.back().reduced == reduced[i])
            axes.back() = {axes.back().size * shape[i], strides[i], reduced[i]};
        else
            axes.push_back({shape[i], strides[i], reduced[i]});
    }
    if (!axes.empty()) {
        nest.inner = axes.back().size;
        nest.inner_reduced = axes.back().reduced;
        axes.pop_back();
    }
    for (const bool which : {false, true}) {
        Loop& loop = which ? nest.reduced : nest.kept;
        loop.strides.resize(1);
        for (const Axis& axis : axes) {
            if (axis.reduced != which) continue;
            loop.sizes.push_back(axis.size);
            loop.strides[0].push_back(axis.stride);
        }
        loop.sizes.push_back(1);
        loop.strides[0].push_back(0);
    }
    return nest;
}

// How elements enter the total. Log-sum-exp is a sum of exp(x - shift), where the shift is the maximum.
enum class Step { add, multiply, larger, smaller, add_absolute, add_square, add_exp };

Step step_of(Reduction kind) {
    switch (kind) {
        case Reduction::prod:
            return Step::multiply;
        case Reduction::max:
            return Step::larger;
        case Reduction::min:
            return Step::smaller;
        case Reduction::l1:
            return Step::add_absolute;
        case Reduction::l2:
        case Reduction::sum_square:
            return Step::add_square;
        case Reduction::log_sum_exp:
            return Step::add_exp;
        default:
            return Step::add;
    }
}

double start_of(Step step) {
    if (step == Step::larger) return -std::numeric_limits<double>::infinity();
    if (step == Step::smaller) return std::numeric_limits<double>::infinity();
    return step == Step::multiply ? 1.0 : 0.0;
}

double finish(Reduction kind, double total, double count, double shift) {
    switch (kind) {
        case Reduction::mean:
            return total / count;
        case Reduction::l2:
            return std::sqrt(total);
        case Reduction::log_sum:
            return std::log(total);
        case Reduction::log_sum_exp:
            return std::isfinite(shift) ? shift + std::log(total) : shift;
        default:
            return total;
    }
}

template <Step step>
KILTER_INLINE float term(float x, float shift) {
    if constexpr (step == Step::add_absolute) return x < 0.0F ? -x : x;
    if constexpr (step == Step::add_square) return x * x;
    if constexpr (step == Step::add_exp) return vector_exp(x - shift);
    return x;
}

// A run of elements that all enter one total.
template <Step step>
KILTER_INLINE double sum_run(const float* x, int64_t n, float shift, double total) {
    for (int64_t start = 0; start < n; start += kBlock) {
        const int64_t end = start + kBlock < n ? start + kBlock : n;
        float part = 0.0F;
#pragma omp simd reduction(+ : part)
        for (int64_t i = start; i < end; ++i) part += term<step>(x[i], shift);
        total += part;
    }
    return total;
}

template <Step step>
KILTER_INLINE double extreme_run(const float* x, int64_t n, double total) {
    float best = static_cast<float>(total);
    int lost = 0;  // NaN wins over every number
    if constexpr (step == Step::larger) {
#pragma omp simd reduction(max : best) reduction(| : lost)
        for (int64_t i = 0; i < n; ++i) {
            best = x[i] > best ? x[i] : best;
            lost |= static_cast<int>(x[i] != x[i]);
        }
    } else {
#pragma omp simd reduction(min : best) reduction(| : lost)
        for (int64_t i = 0; i < n; ++i) {
            best = x[i] < best ? x[i] : best;
            lost |= static_cast<int>(x[i] != x[i]);
        }
    }
    if (lost != 0 || total != total) return std::numeric_limits<double>::quiet_NaN();
    return best;
}

KILTER_INLINE void run_body(Step step, const float* x, int64_t n, float shift, double& total) {
    switch (step) {
        case Step::add:
            total = sum_run<Step::add>(x, n, shift, total);
            return;
        case Step::add_absolute:
            total = sum_run<Step::add_absolute>(x, n, shift, total);
            return;
        case Step::add_square:
            total = sum_run<Step::add_square>(x, n, shift, total);
            return;
        case Step::add_exp:
            total = sum_run<Step::add_exp>(x, n, shift, total);
            return;
        case Step::larger:
            total = extreme_run<Step::larger>(x, n, total);
            return;
        case Step::smaller:
            total = extreme_run<Step::smaller>(x, n, total);
            return;
        case Step::multiply:
            for (int64_t i = 0; i < n; ++i) total *= x[i];
            return;
    }
}
KILTER_SIMD(run, (Step step, const float* x, int64_t n, float shift, double& total), step, x, n, shift, total)

// A run of elements that enter one total each.
template <Step step>
KILTER_INLINE void add_columns(const float* x, int64_t n, const float* shifts, float* parts) {
    for (int64_t i = 0; i < n; ++i) parts[i] += term<step>(x[i], shifts[i]);
}

KILTER_INLINE void columns_body(Step step, const float* x, int64_t n, const float* shifts, float* parts,
                                double* totals) {
    switch (step) {
        case Step::add:
            return add_columns<Step::add>(x, n, shifts, parts);
        case Step::add_absolute:
            return add_columns<Step::add_absolute>(x, n, shifts, parts);
        case Step::add_square:
            return add_columns<Step::add_square>(x, n, shifts, parts);
        case Step::add_exp:
            return add_columns<Step::add_exp>(x, n, shifts, parts);
        case Step::larger:
            for (int64_t i = 0; i < n; ++i) {
                const double value = x[i];
                totals[i] = value > totals[i] || value != value ? value : totals[i];
            }
            return;
        case Step::smaller:
            for (int64_t i = 0; i < n; ++i) {
                const double value = x[i];
                totals[i] = value < totals[i] || value != value ? value : totals[i];
            }
            return;
        case Step::multiply:
            for (int64_t i = 0; i < n; ++i) totals[i] *= x[i];
            return;
    }
}
KILTER_SIMD(columns,
            (Step step, const float* x, int64_t n, const float* shifts, float* parts, double* totals), step,
            x, n, shifts, parts, totals)

double reduce_run(Step step, const Nest& nest, const float* x, float shift) {
    double total = start_of(step);
    RowCursor cursor(nest.reduced, 0);
    const int64_t rows = nest.reduced.rows();
    for (int64_t row = 0; row < rows; ++row, cursor.next())
        run(step, x + cursor.offsets()[0], nest.inner, shift, total);
    return total;
}

void reduce_columns(Step step, const Nest& nest, const float* x, int64_t n, const float* shifts,
                    double* totals) {
    std::array<float, kColumns> parts{};
    std::fill_n(totals, n, start_of(step));
    RowCursor cursor(nest.reduced, 0);
    const int64_t rows = nest.reduced.rows();
    for (int64_t row = 0; row < rows; ++row, cursor.next()) {
        columns(step, x + cursor.offsets()[0], n, shifts, parts.data(), totals);
        const bool block_ends = (row + 1) % kBlock == 0 || row + 1 == rows;
        if (!block_ends || step == Step::larger || step == Step::smaller || step == Step::multiply) continue;
        for (int64_t i = 0; i < n; ++i) totals[i] += parts[static_cast<size_t>(i)];
        parts.fill(0.0F);
    }
}

void reduce(Reduction kind, const Nest& nest, const float* x, float* y) {
    const Step step = step_of(kind);
    const bool shifted = kind == Reduction::log_sum_exp;
    const int64_t kept = nest.kept.rows();
    const auto count = static_cast<double>(nest.count);
    const int64_t pieces = nest.inner_reduced ? 1 : (nest.inner + kColumns - 1) / kColumns;
    const int threads = threads_for(kept * nest.count * (nest.inner_reduced ? 1 : nest.inner));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t job = 0; job < kept * pieces; ++job) {
        const int64_t index = job / pieces;
        const float* from = x + RowCursor(nest.kept, index).offsets()[0];
        if (nest.inner_reduced) {
            const double shift = shifted ? reduce_run(Step::larger, nest, from, 0.0F) : 0.0;
            const double total = reduce_run(step, nest, from, static_cast<float>(shift));
            y[index] = static_cast<float>(finish(kind, total, count, shift));
            continue;
        }
        const int64_t start = job % pieces * kColumns;
        const int64_t n = std::min(kColumns, nest.inner - start);
        std::array<double, kColumns> totals;
        std::array<float, kColumns> shifts{};
        if (shifted) {
            reduce_columns(Step::larger, nest, from + start, n, shifts.data(), totals.data());
            for (size_t i = 0; i < static_cast<size_t>(n); ++i) shifts[i] = static_cast<float>(totals[i]);
        }
        reduce_columns(step, nest, from + start, n, shifts.data(), totals.data());
        for (int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<size_t>(i);
            y[index * nest.inner + start + i] =
                static_cast<float>(finish(kind, totals[at], count, shifts[at]));
        }
    }
}

struct Entry {
    std::string_view op;
    Reduction kind;
};
constexpr std::array kReductions{
    Entry{"ReduceSum", Reduction::sum},        Entry{"ReduceMean", Reduction::mean},
    Entry{"ReduceMax", Reduction::max},        Entry{"ReduceMin", Reduction::min},
    Entry{"ReduceProd", Reduction::prod},      Entry{"ReduceL1", Reduction::l1},
    Entry{"ReduceL2", Reduction::l2},          Entry{"ReduceSumSquare", Reduction::sum_square},
    Entry{"ReduceLogSum", Reduction::log_sum}, Entry{"ReduceLogSumExp", Reduction::log_sum_exp},
};

// Integers are exact and wrap, so the order of the additions does not matter.
template <class T>
void reduce_integers(Reduction kind, const Nest& nest, const T* x, T* y) {
    const int64_t kept = nest.kept.rows();
    const int64_t columns = nest.inner_reduced ? 1 : nest.inner;
    const int64_t length = nest.inner_reduced ? nest.inner : 1;
    const int threads = threads_for(kept * columns * nest.count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t job = 0; job < kept * columns; ++job) {
        const T* from = x + RowCursor(nest.kept, job / columns).offsets()[0] + job % columns;
        T best = from[0];
        uint64_t sum = 0;
        RowCursor cursor(nest.reduced, 0);
        for (int64_t row = 0; row < nest.reduced.rows(); ++row, cursor.next()) {
            const T* run = from + cursor.offsets()[0];
            if (kind == Reduction::max)
                for (int64_t i = 0; i < length; ++i) best = std::max(best, run[i]);
            else if (kind == Reduction::min)
                for (int64_t i = 0; i < length; ++i) best = std::min(best, run[i]);
            else
                for (int64_t i = 0; i < length; ++i)
                    sum += static_cast<uint64_t>(static_cast<int64_t>(run[i]));
        }
        const bool extreme = kind == Reduction::max || kind == Reduction::min;
        if (kind == Reduction::mean) sum = static_cast<uint64_t>(static_cast<int64_t>(sum) / nest.count);
        y[job] = extreme ? best : static_cast<T>(sum);
    }
}

// As the array lies in memory; the result keeps the order of the axes that are left.
void reduce_in_memory_order(Builder& builder, Reduction kind, const Value* value,
                            const std::vector<bool>& reduced, const Value* result) {
    OrderedArray x = in_memory_order(builder, value);
    if (x.order.block != 0) x = in_natural_order(builder, value);
    const Shape& shape = builder.shape(result);
    const bool keeps_rank = shape.size() == reduced.size();
    std::vector<bool> in_memory;
    MemoryOrder left;
    for (const size_t axis : x.order.axes) {
        in_memory.push_back(reduced[axis]);
        const auto before =
            static_cast<size_t>(std::count(reduced.begin(), reduced.begin() + static_cast<long>(axis), true));
        if (keeps_rank)
            left.axes.push_back(axis);
        else if (!reduced[axis])
            left.axes.push_back(axis - before);
    }
    x.array.shape = x.sizes;
    add_reduction(builder, kind, x.array, in_memory, builder.result(result, left.desc(DType::f32, shape)));
}

bool build(Builder& builder, const Node& node) {
    const Value* value = node.input(0);
    const Tensor* axes = builder.constant(node.input(1));
    if (node.input(1) != nullptr && axes == nullptr) return false;
    const Shape& shape = builder.shape(value);
    std::vector<bool> reduced(shape.size(), false);
    const bool listed = axes != nullptr && axes->size() > 0;
    if (listed)
        for (const int64_t axis : axes->to_ints())
            reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)] = true;
    else if (node.attributes.get_int("noop_with_empty_axes") == 0)
        reduced.assign(shape.size(), true);
    const Reduction kind = std::ranges::find(kReductions, std::string_view(node.op()), &Entry::op)->kind;
    const DType dtype = builder.dtype(value);
    if (dtype == DType::f32) {
        reduce_in_memory_order(builder, kind, value, reduced, node.output(0));
        return true;
    }
    const bool simple =
        kind == Reduction::sum || kind == Reduction::max || kind == Reduction::min || kind == Reduction::mean;
    if (!simple || (dtype != DType::i64 && dtype != DType::i32)) return false;
    const Array x = builder.dense(value);
    const Array y = builder.dense_result(node.output(0));
    const Nest nest = make_nest(shape, reduced);
    builder.add_native("native", {x}, {y}, [=](Execution& execution) {
        const char* from = execution.address(x);
        char* to = execution.address(y);
        if (dtype == DType::i64)
            reduce_integers(kind, nest, reinterpret_cast<const int64_t*>(from),
                            reinterpret_cast<int64_t*>(to));
        else
            reduce_integers(kind, nest, reinterpret_cast<const int32_t*>(from),
                            reinterpret_cast<int32_t*>(to));
    });
    return true;
}

bool build_global(Builder& builder, const Node& node) {
    const Value* value = node.input(0);
    if (builder.dtype(value) != DType::f32) return false;
    std::vector<bool> reduced(builder.shape(value).size(), true);
    reduced[0] = reduced[1] = false;
    const Reduction kind = node.op() == "GlobalMaxPool" ? Reduction::max : Reduction::mean;
    reduce_in_memory_order(builder, kind, value, reduced, node.output(0));
    return true;
}

const bool kRegistered = [] {
    for (const Entry& entry : kReductions) RegisterKernel(entry.op, build);
    return true;
}();

KILTER_KERNEL("GlobalAveragePool", build_global);
KILTER_KERNEL("GlobalMaxPool", build_global);

}  // namespace

void add_reduction(Builder& builder, Reduction kind, const Array& x, const std::vector<bool>& reduced,
                   const Array& y) {
    const Nest nest = make_nest(x.shape, reduced);
    builder.add_native("native", {x}, {y}, [=](Execution& execution) {
        reduce(kind, nest, reinterpret_cast<const float*>(execution.address(x)),
               reinterpret_cast<float*>(execution.address(y)));
    });
}

}  // namespace kilter::engine
