// Pad: grows (or, with negative pads, crops) a tensor; what is added is a constant, a reflection, the
// edge or a repetition.
#include <algorithm>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"
#include "ops/shape_data.h"

namespace kilter::pad_op {

struct AxisPads {
    int64_t begin = 0, end = 0;
};

std::vector<AxisPads> pads_by_axis(const std::vector<int64_t>& pads,
                                   const std::optional<std::vector<int64_t>>& axes, int64_t rank) {
    std::vector<AxisPads> result(static_cast<size_t>(rank));
    const size_t count = axes ? axes->size() : result.size();
    require(pads.size() == 2 * count, "pads has {} entries, expected {}", pads.size(), 2 * count);
    for (size_t i = 0; i < count; ++i) {
        const int64_t axis = axes ? (*axes)[i] : static_cast<int64_t>(i);
        require(axis >= -rank && axis < rank, "axis {} is out of range for rank {}", axis, rank);
        result[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = {pads[i], pads[i + count]};
    }
    return result;
}

int64_t padded(int64_t extent, const AxisPads& pads) {
    int64_t sum = 0;
    require(!__builtin_add_overflow(extent, pads.begin, &sum) &&
                !__builtin_add_overflow(sum, pads.end, &sum) && sum >= 0,
            "pads of {} and {} do not fit a dimension of {}", pads.begin, pads.end, extent);
    return sum;
}

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    if (!x) return context.set_output(0, context.dtype(0));
    const auto pads = context.ints(1);
    const auto axes = context.has_input(3) ? context.ints(3) : std::nullopt;
    Dims shape = *x;
    if (!pads || (context.has_input(3) && !axes)) {
        shape.assign(x->size(), Dim());
        return context.set_output(0, context.dtype(0), std::move(shape));
    }
    const std::vector<AxisPads> by_axis = pads_by_axis(*pads, axes, context.rank(0));
    for (size_t i = 0; i < shape.size(); ++i) {
        if (by_axis[i].begin == 0 && by_axis[i].end == 0) continue;
        shape[i] = shape[i].known() ? Dim(padded(shape[i].value, by_axis[i])) : Dim();
    }
    context.set_output(0, context.dtype(0), std::move(shape));
}

// Position in the source of each position along one padded axis; -1 where the constant goes.
std::vector<int64_t> source_positions(int64_t extent, const AxisPads& pads, const std::string& mode) {
    std::vector<int64_t> positions(static_cast<size_t>(padded(extent, pads)));
    require(mode == "constant" || extent > 0 || positions.empty(),
            "cannot pad an empty dimension in mode '{}'", mode);
    const int64_t period = 2 * (extent - 1);
    for (size_t i = 0; i < positions.size(); ++i) {
        int64_t at = static_cast<int64_t>(i) - pads.begin;
        if (mode == "constant") {
            at = at < 0 || at >= extent ? -1 : at;
        } else if (mode == "edge") {
            at = std::clamp<int64_t>(at, 0, extent - 1);
        } else if (mode == "wrap") {
            at = (at % extent + extent) % extent;
        } else if (extent == 1) {
            at = 0;
        } else {
            at = (at % period + period) % period;
            if (at >= extent) at = period - at;
        }
        positions[i] = at;
    }
    return positions;
}

// Copies along the last axis in runs; `positions` say where each row comes from along the outer axes.
// A null source stands for rows that are all constant.
class PaddedCopy {
  public:
    PaddedCopy(const Shape& from, std::vector<std::vector<int64_t>> positions, size_t width)
        : positions_(std::move(positions)),
          strides_(row_major_strides(from)),
          width_(static_cast<int64_t>(width)) {}

    void run(size_t axis, const std::byte* source, const std::byte* fill, std::byte*& target) const {
        const bool last = axis + 1 == positions_.size();
        for (size_t i = 0; i < positions_[axis].size();) {
            const int64_t at = positions_[axis][i];
            const bool filled = source == nullptr || at < 0;
            if (!last) {
                run(axis + 1, filled ? nullptr : source + at * strides_[axis] * width_, fill, target);
                ++i;
                continue;
            }
            size_t length = 1;  // of the run of consecutive positions, or of filled ones
            while (i + length < positions_[axis].size() &&
                   (filled ? source == nullptr || positions_[axis][i + length] < 0
                           : positions_[axis][i + length] == at + static_cast<int64_t>(length)))
                ++length;
            copy_block({static_cast<int64_t>(length)}, static_cast<size_t>(width_),
                       filled ? fill : source + at * width_, {filled ? 0 : 1}, target, {1});
            target += static_cast<int64_t>(length) * width_;
            i += length;
        }
    }

  private:
    std::vector<std::vector<int64_t>> positions_;
    Shape strides_;
    int64_t width_;
};

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const std::string mode = context.attributes().get_string("mode", "constant");
    require(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap", "unknown mode '{}'",
            mode);
    std::optional<std::vector<int64_t>> axes;
    if (context.has_input(3)) axes = context.input(3).to_ints();
    const std::vector<AxisPads> pads = pads_by_axis(context.input(1).to_ints(), axes, x.rank());
    Tensor fill = context.has_input(2) ? context.input(2) : Tensor();
    if (fill.empty())
        fill = x.dtype() == DType::string ? Tensor(x.dtype(), {}) : Tensor::filled(x.dtype(), {}, 0);
    require(fill.size() == 1, "the constant to pad with must be one element, not {}", fill.size());
    Shape shape;
    for (size_t i = 0; i < pads.size(); ++i) shape.push_back(padded(x.shape()[i], pads[i]));
    ElementMove move(context, {x, fill});
    std::byte* y = move.target(0, shape);
    std::vector<std::vector<int64_t>> positions;
    for (size_t i = 0; i < pads.size() && element_count(shape) > 0; ++i)
        positions.push_back(source_positions(x.shape()[i], pads[i], mode));
    if (shape.empty())
        copy_block({}, move.width(), move.source(), {}, y, {});
    else if (!positions.empty())
        PaddedCopy(x.shape(), std::move(positions), move.width()).run(0, move.source(), move.source(1), y);
    move.finish();
}

KILTER_OP({.name = "Pad",
           .min_inputs = 2,
           .max_inputs = 4,
           .attributes = {{"mode", AttributeKind::text}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::pad_op
