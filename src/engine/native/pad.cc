// Pad in all modes: the innermost padded axis is a few runs (copied, reversed or filled) that every row repeats.
#include <algorithm>
#include <cstring>

#include "engine/builder.h"
#include "engine/native/loop.h"
#include "engine/native/order.h"
#include "ops/broadcast.h"

namespace kilter::engine {
namespace {

// Where each position along a padded axis comes from; -1: the constant.
std::vector<int64_t> positions(int64_t extent, int64_t begin, int64_t result, const std::string& mode) {
    std::vector<int64_t> from(static_cast<size_t>(result));
    const int64_t period = std::max<int64_t>(2 * (extent - 1), 1);
    for (int64_t i = 0; i < result; ++i) {
        int64_t at = i - begin;
        if (mode == "constant") {
            at = at < 0 || at >= extent ? -1 : at;
        } else if (mode == "edge") {
            at = std::clamp<int64_t>(at, 0, extent - 1);
        } else if (mode == "wrap") {
            at = (at % extent + extent) % extent;
        } else {
            at = (at % period + period) % period;
            if (at >= extent) at = period - at;
        }
        from[static_cast<size_t>(i)] = extent == 1 && mode == "reflect" ? 0 : at;
    }
    return from;
}

struct Run {
    int64_t from = -1;  // first block of the source, -1: the constant
    int64_t blocks = 0;
};

std::vector<Run> runs_of(const std::vector<int64_t>& from) {
    std::vector<Run> runs;
    for (const int64_t at : from) {
        const bool continues =
            !runs.empty() && (at < 0 ? runs.back().from < 0
                                     : runs.back().from >= 0 && at == runs.back().from + runs.back().blocks);
        if (continues)
            ++runs.back().blocks;
        else
            runs.push_back({at, 1});
    }
    return runs;
}

void fill(char* to, const char* value, size_t width, size_t bytes) {
    if (width == 4) {
        uint32_t word = 0;
        std::memcpy(&word, value, 4);
        std::fill_n(reinterpret_cast<uint32_t*>(to), bytes / 4, word);
    } else if (width == 1) {
        std::memset(to, *value, bytes);
    } else {
        for (size_t i = 0; i < bytes; i += width) std::memcpy(to + i, value, width);
    }
}

struct PaddedAxis {
    std::vector<int64_t> from;
    int64_t stride;  // bytes, in the source
};

struct PadPlan {
    std::vector<PaddedAxis> outer;
    std::vector<Run> runs;
    int64_t rows = 1;
    size_t block = 1;  // bytes of what moves together
    size_t row = 0;    // bytes of a row of the result
};

void run(const PadPlan& plan, const char* x, const char* value, size_t width, char* y) {
    const int threads = threads_for(plan.rows * static_cast<int64_t>(plan.row / width));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t row = 0; row < plan.rows; ++row) {
        char* to = y + static_cast<size_t>(row) * plan.row;
        const char* source = x;
        int64_t rest = row;
        for (size_t axis = plan.outer.size(); axis-- > 0 && source != nullptr;) {
            const PaddedAxis& padded = plan.outer[axis];
            const auto size = static_cast<int64_t>(padded.from.size());
            const int64_t at = padded.from[static_cast<size_t>(rest % size)];
            rest /= size;
            source = at < 0 ? nullptr : source + at * padded.stride;
        }
        if (source == nullptr) {
            fill(to, value, width, plan.row);
            continue;
        }
        for (const Run& piece : plan.runs) {
            const size_t bytes = static_cast<size_t>(piece.blocks) * plan.block;
            if (piece.from < 0)
                fill(to, value, width, bytes);
            else
                std::memcpy(to, source + static_cast<size_t>(piece.from) * plan.block, bytes);
            to += bytes;
        }
    }
}

bool build(Builder& builder, const Node& node) {
    const Value* x = node.input(0);
    const Tensor* pads = builder.constant(node.input(1));
    const Tensor* axes = builder.constant(node.input(3));
    const DType dtype = builder.dtype(x);
    if (bits(dtype) < 8 || pads == nullptr || (node.input(3) != nullptr && axes == nullptr)) return false;
    const Value* constant = node.input(2);
    if (constant != nullptr &&
        (builder.dtype(constant) != dtype || element_count(builder.shape(constant)) != 1))
        return false;
    const std::string mode = node.attributes.get_string("mode", "constant");
    if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap") return false;
    if (builder.shape(x).empty()) return false;
    OrderedArray source = in_memory_order(builder, x);
    if (source.order.block != 0) source = in_natural_order(builder, x);
    const Shape& shape = source.sizes;
    const Shape result = source.order.sizes(builder.shape(node.output(0)));
    std::vector<int64_t> begins(shape.size(), 0);  // in memory order
    const std::vector<int64_t> amounts = pads->to_ints();
    const std::vector<int64_t> listed = axes != nullptr ? axes->to_ints() : std::vector<int64_t>();
    for (size_t i = 0; i < amounts.size() / 2; ++i) {
        const int64_t axis = axes == nullptr ? static_cast<int64_t>(i)
                             : listed[i] < 0 ? listed[i] + static_cast<int64_t>(shape.size())
                                             : listed[i];
        begins[source.order.place(static_cast<size_t>(axis))] = amounts[i];
    }
    // Axes behind the last padded one move together.
    size_t last = shape.size() - 1;
    while (last > 0 && begins[last] == 0 && result[last] == shape[last]) --last;
    const size_t width = byte_count(dtype, 1);
    const Shape strides = row_major_strides(shape);
    PadPlan plan;
    plan.block = static_cast<size_t>(strides[last]) * width;
    plan.row = plan.block * static_cast<size_t>(result[last]);
    plan.runs = runs_of(positions(shape[last], begins[last], result[last], mode));
    for (size_t axis = 0; axis < last; ++axis) {
        plan.outer.push_back({positions(shape[axis], begins[axis], result[axis], mode),
                              strides[axis] * static_cast<int64_t>(width)});
        plan.rows *= result[axis];
    }
    const Array from = source.array;
    std::vector<Array> reads{from};
    if (constant != nullptr) reads.push_back(builder.dense(constant));
    const Array target =
        builder.result(node.output(0), source.order.desc(dtype, builder.shape(node.output(0))));
    builder.add_native("native", reads, {target}, [=](Execution& execution) {
        const char zero[16] = {};  // NOLINT: the widest element
        const char* value = reads.size() > 1 ? execution.address(reads[1]) : zero;
        run(plan, execution.address(from), value, width, execution.address(target));
    });
    return true;
}

KILTER_KERNEL("Pad", build);

}  // namespace
}  // namespace kilter::engine
