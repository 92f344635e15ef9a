// ScatterElements and ScatterND: a copy of the data with some elements replaced, or combined by `reduction`.
#include <cmath>
#include <cstring>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"

namespace kilter::scatter_op {

void infer(InferContext& context) { context.same_as_input(); }

enum class Reduction { none, add, mul, max, min };

Reduction reduction_of(const Attributes& attributes) {
    const std::string text = attributes.get_string("reduction", "none");
    if (text == "none") return Reduction::none;
    if (text == "add") return Reduction::add;
    if (text == "mul") return Reduction::mul;
    if (text == "max") return Reduction::max;
    if (text == "min") return Reduction::min;
    fail("unknown reduction '{}'", text);
}

template <class T>
T combined(Reduction reduction, T old, T update) {
    if (reduction == Reduction::add) return old + update;
    if (reduction == Reduction::mul) return old * update;
    if (old != old) return old;  // NaN stays
    if (reduction == Reduction::max) return update > old || update != update ? update : old;
    return update < old || update != update ? update : old;
}

// One run of consecutive elements of the updates goes to one of the result.
class Scatter {
  public:
    Scatter(KernelContext& context, const Tensor& data, const Tensor& updates)
        : reduction_(reduction_of(context.attributes())),
          dtype_(data.dtype()),
          move_(context, {data, updates}),
          result_(move_.target(0, data.shape())) {
        if (data.size() > 0)
            std::memcpy(result_, move_.source(), static_cast<size_t>(data.size()) * move_.width());
        require(
            reduction_ == Reduction::none || is_float(dtype_) || (is_integer(dtype_) && bits(dtype_) >= 8),
            "reductions are not defined for elements of {}", name(dtype_));
    }

    void put(int64_t target, int64_t update, int64_t count) {
        if (reduction_ == Reduction::none) {
            std::memcpy(result_ + static_cast<size_t>(target) * move_.width(),
                        move_.source(1) + static_cast<size_t>(update) * move_.width(),
                        static_cast<size_t>(count) * move_.width());
            return;
        }
        for (int64_t i = 0; i < count; ++i) put_one(target + i, update + i);
    }

    void finish() { move_.finish(); }

  private:
    void put_one(int64_t target, int64_t update) {
        if (!is_integer(dtype_)) {
            store_double(dtype_, result_, target,
                         combined(reduction_, load_double(dtype_, result_, target),
                                  load_double(dtype_, move_.source(1), update)));
            return;
        }
        const int64_t old = load_int(dtype_, result_, target);
        const int64_t next = load_int(dtype_, move_.source(1), update);
        const bool extreme = reduction_ == Reduction::max || reduction_ == Reduction::min;
        // Unsigned arithmetic wraps; signed numbers must be compared as such.
        const int64_t value = extreme && dtype_ != DType::u64
                                  ? combined(reduction_, old, next)
                                  : static_cast<int64_t>(combined(reduction_, static_cast<uint64_t>(old),
                                                                  static_cast<uint64_t>(next)));
        store_int(dtype_, result_, target, value);
    }

    Reduction reduction_;
    DType dtype_;
    ElementMove move_;
    std::byte* result_;
};

int64_t checked_index(int64_t index, int64_t extent) {
    require(index >= -extent && index < extent, "index {} is out of range for a dimension of {}", index,
            extent);
    return index < 0 ? index + extent : index;
}

void scatter_elements(KernelContext& context) {
    const Tensor& data = context.input(0);
    const Tensor& indices = context.input(1);
    const Tensor& updates = context.input(2);
    require(data.rank() > 0 && data.rank() == indices.rank(), "data of rank {} and indices of rank {}",
            data.rank(), indices.rank());
    require(indices.shape() == updates.shape(), "indices {} and updates {} differ in shape",
            to_string(indices.shape()), to_string(updates.shape()));
    const auto axis =
        static_cast<size_t>(normalize_axis(context.attributes().get_int("axis", 0), data.rank()));
    for (size_t i = 0; i < data.shape().size(); ++i)
        require(i == axis || indices.shape()[i] <= data.shape()[i], "indices {} do not fit into data {}",
                to_string(indices.shape()), to_string(data.shape()));
    const Shape strides = row_major_strides(data.shape());
    Shape position(strides.size(), 0);
    Scatter scatter(context, data, updates);
    int64_t next = 0;
    for (const int64_t index : indices.to_ints()) {
        int64_t offset = checked_index(index, data.shape()[axis]) * strides[axis];
        for (size_t i = 0; i < position.size(); ++i)
            if (i != axis) offset += position[i] * strides[i];
        scatter.put(offset, next++, 1);
        for (size_t i = position.size(); i-- > 0;) {
            if (++position[i] < indices.shape()[i]) break;
            position[i] = 0;
        }
    }
    scatter.finish();
}

void scatter_nd(KernelContext& context) {
    const Tensor& data = context.input(0);
    const Tensor& indices = context.input(1);
    const Tensor& updates = context.input(2);
    require(data.rank() > 0 && indices.rank() > 0, "data and indices must have at least one dimension");
    const int64_t depth = indices.shape().back();
    require(depth <= data.rank(), "indices of {} coordinates are too long for data of rank {}", depth,
            data.rank());
    Shape expected(indices.shape().begin(), indices.shape().end() - 1);
    expected.insert(expected.end(), data.shape().begin() + depth, data.shape().end());
    require(updates.shape() == expected, "updates have shape {}, expected {}", to_string(updates.shape()),
            to_string(expected));
    const Shape strides = row_major_strides(data.shape());
    const int64_t run = element_count(std::span(data.shape()).subspan(static_cast<size_t>(depth)));
    const std::vector<int64_t> coordinates = indices.to_ints();
    Scatter scatter(context, data, updates);
    const int64_t slices = element_count(std::span(indices.shape()).first(indices.shape().size() - 1));
    for (int64_t slice = 0; slice < slices && run > 0; ++slice) {
        int64_t offset = 0;
        for (int64_t k = 0; k < depth; ++k)
            offset += checked_index(coordinates[static_cast<size_t>(slice * depth + k)],
                                    data.shape()[static_cast<size_t>(k)]) *
                      strides[static_cast<size_t>(k)];
        scatter.put(offset, slice * run, run);
    }
    scatter.finish();
}

KILTER_OP({.name = "ScatterElements",
           .min_inputs = 3,
           .max_inputs = 3,
           .attributes = {{"axis", AttributeKind::integer}, {"reduction", AttributeKind::text}},
           .infer = infer,
           .kernel = scatter_elements});
KILTER_OP({.name = "ScatterND",
           .min_inputs = 3,
           .max_inputs = 3,
           .attributes = {{"reduction", AttributeKind::text}},
           .infer = infer,
           .kernel = scatter_nd});

}  // namespace kilter::scatter_op
