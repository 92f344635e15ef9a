// Resize: one axis after the other, in the order the array lies in memory. What each position mixes comes from ops/resize.h.
#include "ops/resize.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/native/loop.h"
#include "engine/native/order.h"
#include "engine/native/simd.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

using Taps = std::vector<std::optional<AxisTaps>>;

// Taps of one axis as tables [tap][position], every position with the same number of taps.
struct Table {
    int64_t outer = 1, input = 1, output = 1, inner = 1;
    size_t taps = 1;
    std::vector<int32_t> indices;
    std::vector<float> weights;
};

Table make_table(const AxisTaps& axis, int64_t outer, int64_t input, int64_t inner) {
    Table table;
    table.outer = outer;
    table.input = input;
    table.output = static_cast<int64_t>(axis.size());
    table.inner = inner;
    for (const ResizeTaps& position : axis) table.taps = std::max(table.taps, position.entries.size());
    table.indices.resize(table.taps * axis.size(), 0);
    table.weights.resize(table.taps * axis.size(), 0.0F);
    for (size_t i = 0; i < axis.size(); ++i) {
        for (size_t k = 0; k < axis[i].entries.size(); ++k) {
            table.indices[k * axis.size() + i] = static_cast<int32_t>(axis[i].entries[k].first);
            table.weights[k * axis.size() + i] = static_cast<float>(axis[i].entries[k].second);
        }
    }
    return table;
}

// The axis is the last one: positions side by side.
KILTER_INLINE void mix_positions_body(const Table& table, const float* x, float* y) {
    const int64_t n = table.output;
    const int32_t* indices = table.indices.data();
    const float* weights = table.weights.data();
    for (int64_t i = 0; i < n; ++i) y[i] = weights[i] * x[indices[i]];
    for (size_t k = 1; k < table.taps; ++k) {
        indices += n;
        weights += n;
        for (int64_t i = 0; i < n; ++i) y[i] += weights[i] * x[indices[i]];
    }
}
KILTER_SIMD(mix_positions, (const Table& table, const float* x, float* y), table, x, y)

// Whole runs behind the axis are mixed.
KILTER_INLINE void mix_runs_body(const float* a, float wa, const float* b, float wb, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = wa * a[i] + wb * b[i];
}
KILTER_SIMD(mix_runs, (const float* a, float wa, const float* b, float wb, float* y, int64_t n), a, wa, b, wb,
            y, n)

KILTER_INLINE void add_run_body(const float* a, float wa, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] += wa * a[i];
}
KILTER_SIMD(add_run, (const float* a, float wa, float* y, int64_t n), a, wa, y, n)

void mix_position(const Table& table, const float* x, int64_t position, float* y) {
    const auto at = [&](size_t k) {
        return k * static_cast<size_t>(table.output) + static_cast<size_t>(position);
    };
    const auto run = [&](size_t k) { return x + table.indices[at(k)] * table.inner; };
    const size_t second = table.taps > 1 ? 1 : 0;
    const float second_weight = table.taps > 1 ? table.weights[at(1)] : 0.0F;
    mix_runs(run(0), table.weights[at(0)], run(second), second_weight, y, table.inner);
    for (size_t k = 2; k < table.taps; ++k) add_run(run(k), table.weights[at(k)], y, table.inner);
}

void resize_axis(const Table& table, const float* x, float* y) {
    const bool last = table.inner == 1;
    const int threads =
        threads_for(table.outer * table.output * table.inner * static_cast<int64_t>(table.taps));
    const int64_t jobs = last ? table.outer : table.outer * table.output;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t job = 0; job < jobs; ++job) {
        if (last)
            mix_positions(table, x + job * table.input, y + job * table.output);
        else
            mix_position(table, x + job / table.output * table.input * table.inner, job % table.output,
                         y + job * table.inner);
    }
}

// Nearest: every element of the result is one of the source, whatever its type.
struct Picked {
    std::vector<std::vector<int64_t>> from;  // by axis in memory order, offsets in bytes
    int64_t rows = 1, blocks = 1;
    size_t block = 1;  // bytes of what lies behind the last resized axis
};

Picked make_picked(const Taps& taps, const MemoryOrder& order, const Shape& sizes, size_t width) {
    size_t last = sizes.size();
    while (last > 1 && !taps[order.axes[last - 1]]) --last;
    Picked picked;
    auto bytes = static_cast<int64_t>(width);
    std::vector<int64_t> strides(sizes.size());
    for (size_t i = sizes.size(); i-- > 0;) {
        strides[i] = bytes;
        bytes *= sizes[i];
    }
    picked.block = static_cast<size_t>(strides[last - 1]);
    for (size_t i = 0; i < last; ++i) {
        const std::optional<AxisTaps>& axis = taps[order.axes[i]];
        std::vector<int64_t> from(axis ? axis->size() : static_cast<size_t>(sizes[i]));
        for (size_t at = 0; at < from.size(); ++at)
            from[at] = (axis ? (*axis)[at].entries[0].first : static_cast<int64_t>(at)) * strides[i];
        (i + 1 < last ? picked.rows : picked.blocks) *= static_cast<int64_t>(from.size());
        picked.from.push_back(std::move(from));
    }
    return picked;
}

void pick(const Picked& picked, const char* x, char* y) {
    const int threads = threads_for(picked.rows * picked.blocks * static_cast<int64_t>(picked.block) / 4);
    const std::vector<int64_t>& along = picked.from.back();
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t row = 0; row < picked.rows; ++row) {
        const char* source = x;
        int64_t rest = row;
        for (size_t axis = picked.from.size() - 1; axis-- > 0;) {
            const auto size = static_cast<int64_t>(picked.from[axis].size());
            source += picked.from[axis][static_cast<size_t>(rest % size)];
            rest /= size;
        }
        char* to = y + static_cast<size_t>(row * picked.blocks) * picked.block;
        if (picked.block == 4) {
            auto* words = reinterpret_cast<uint32_t*>(to);
            for (size_t i = 0; i < along.size(); ++i) std::memcpy(words + i, source + along[i], 4);
        } else {
            for (size_t i = 0; i < along.size(); ++i)
                std::memcpy(to + i * picked.block, source + along[i], picked.block);
        }
    }
}

std::vector<float> floats(const Tensor* tensor) {
    if (tensor == nullptr) return {};
    const std::vector<double> values = tensor->to_doubles();
    return {values.begin(), values.end()};
}

bool build(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    const Value* y = node.output(0);
    const DType dtype = builder.dtype(x);
    const bool nearest = node.attributes.get_string("mode", "nearest") == "nearest";
    if (bits(dtype) < 8 || (!nearest && dtype != DType::f32)) return false;
    const Tensor* scales = builder.constant(node.input(2));
    const Tensor* sizes = builder.constant(node.input(3));
    if ((node.input(2) != nullptr && scales == nullptr) || (node.input(3) != nullptr && sizes == nullptr))
        return false;
    // Cropping depends on a region, which is data.
    if (node.attributes.get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
        return false;
    const Taps taps = resize_taps(node.attributes, builder.shape(x), floats(scales),
                                  sizes != nullptr ? sizes->to_ints() : std::vector<int64_t>());
    OrderedArray source = in_memory_order(builder, x);
    // Blocks of channels and resized channels do not go together.
    if (source.order.block != 0 && taps[1]) source = in_natural_order(builder, x);
    if (std::ranges::none_of(taps, [](const auto& axis) { return axis.has_value(); })) {
        builder.alias(y, source.array);
        return true;
    }
    if (nearest) {
        const Picked picked = make_picked(taps, source.order, source.sizes, byte_count(dtype, 1));
        const Array from = source.array;
        const Array to = builder.result(y, source.order.desc(dtype, builder.shape(y)));
        builder.add_native("native", {from}, {to}, [=](Execution& execution) {
            pick(picked, execution.address(from), execution.address(to));
        });
        return true;
    }
    // Axes that shrink first, those that grow last: the arrays in between stay small.
    std::vector<size_t> places;
    for (size_t i = 0; i < source.order.axes.size(); ++i)
        if (taps[source.order.axes[i]]) places.push_back(i);
    std::ranges::stable_sort(places, {}, [&](size_t i) {
        return static_cast<double>(taps[source.order.axes[i]]->size()) / static_cast<double>(source.sizes[i]);
    });
    Array from = source.array;
    Shape current = source.sizes;
    for (size_t step = 0; step < places.size(); ++step) {
        const size_t at = places[step];
        const std::span<const int64_t> now(current);
        const Table table = make_table(*taps[source.order.axes[at]], element_count(now.first(at)), now[at],
                                       element_count(now.subspan(at + 1)));
        current[at] = table.output;
        const Array to = step + 1 < places.size()
                             ? builder.temporary(dtype, current, dense_desc(dtype, current))
                             : builder.result(y, source.order.desc(dtype, builder.shape(y)));
        builder.add_native("native", {from}, {to}, [=](Execution& execution) {
            resize_axis(table, reinterpret_cast<const float*>(execution.address(from)),
                        reinterpret_cast<float*>(execution.address(to)));
        });
        from = to;
    }
    return true;
}

KILTER_KERNEL("Resize", build);

}  // namespace
}  // namespace kilter::engine
