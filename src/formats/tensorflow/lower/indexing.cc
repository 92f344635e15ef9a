// Reading and writing at places: slices, gathers, paddings, one-hot vectors.
#include <array>
#include <limits>

#include "formats/tensorflow/lower/lowering.h"

namespace kilter::tensorflow {
namespace {

constexpr int64_t kFarEnd = std::numeric_limits<int64_t>::max();
constexpr int64_t kFarBegin = std::numeric_limits<int64_t>::min();

// Entry `index` of a vector, as a vector of one.
Value* entry(Lowering& l, Value* vector, int64_t index) {
    return l.emit("Slice", {vector, l.add_ints({index}), l.add_ints({index + 1}), l.add_ints({0})});
}

Value* join(Lowering& l, const std::vector<Value*>& entries) {
    return l.emit("Concat", entries, attributes_of({{"axis", int64_t{0}}}));
}

int64_t length_of(const Lowering& l, const Value* vector) {
    const Dims& dims = l.dims(vector);
    if (dims.size() != 1 || !dims[0].known()) not_lowered("the number of sliced axes is not known");
    return dims[0].value;
}

bool has_bit(int64_t mask, int64_t index) { return index < 63 && ((mask >> index) & 1) != 0; }

// x[begin:end:stride, …] with Python's notation in five masks: omitted ends, an ellipsis, new axes, single indices.
void lower_strided_slice(Lowering& l) {
    const TfAttributes& attributes = l.attributes();
    const int64_t count = length_of(l, l.input(1));
    const Ints strides = l.ints(3);
    require(static_cast<int64_t>(strides.size()) == count, "begin and strides have different lengths");
    const int64_t begin_mask = attributes.get_int("begin_mask");
    const int64_t end_mask = attributes.get_int("end_mask");
    const int64_t ellipsis_mask = attributes.get_int("ellipsis_mask");
    const int64_t new_axis_mask = attributes.get_int("new_axis_mask");
    const int64_t shrink_mask = attributes.get_int("shrink_axis_mask");
    Value* begins = l.as_int64(l.input(1));
    Value* ends = l.as_int64(l.input(2));

    int64_t used = 0;  // axes of x that entries other than the ellipsis stand for
    for (int64_t i = 0; i < count; ++i)
        used += has_bit(ellipsis_mask, i) || has_bit(new_axis_mask, i) ? 0 : 1;

    std::vector<Value*> starts;
    std::vector<Value*> stops;
    Ints axes;
    Ints steps;
    Ints dropped;   // axes of the slice that disappear
    Ints inserted;  // axes of the result that are new
    int64_t axis = 0;
    int64_t place = 0;  // in the result
    for (int64_t i = 0; i < count; ++i) {
        if (has_bit(ellipsis_mask, i)) {
            const int64_t skipped = l.rank(l.input(0)) - used;
            axis += skipped;
            place += skipped;
            continue;
        }
        if (has_bit(new_axis_mask, i)) {
            inserted.push_back(place++);
            continue;
        }
        const int64_t step = strides[static_cast<size_t>(i)];
        require(step != 0, "a stride is zero");
        Value* start = entry(l, begins, i);
        Value* stop = nullptr;
        if (has_bit(shrink_mask, i)) {
            // One past the index; -1 is the last one, whose end is no number.
            Value* next = l.emit("Add", {start, l.add_ints({1})});
            Value* is_last = l.emit("Equal", {start, l.add_ints({-1})});
            stop = l.emit("Where", {is_last, l.add_ints({kFarEnd}), next});
            dropped.push_back(axis);
            steps.push_back(1);
        } else {
            if (has_bit(begin_mask, i)) start = l.add_ints({step > 0 ? 0 : kFarEnd});
            stop = has_bit(end_mask, i) ? l.add_ints({step > 0 ? kFarEnd : kFarBegin}) : entry(l, ends, i);
            steps.push_back(step);
            ++place;
        }
        starts.push_back(start);
        stops.push_back(stop);
        axes.push_back(axis++);
    }
    Value* y = l.input(0);
    if (!axes.empty())
        y = l.emit("Slice", {y, join(l, starts), join(l, stops), l.add_ints(axes), l.add_ints(steps)});
    l.name_main(y);
    if (!dropped.empty()) y = l.emit("Squeeze", {y, l.add_ints(dropped)});
    if (!inserted.empty()) y = l.unsqueeze(y, inserted);
    l.result(y);
}

void lower_slice(Lowering& l) {
    const int64_t count = length_of(l, l.input(1));
    if (count == 0) return l.result(l.input(0));
    Value* begin = l.as_int64(l.input(1));
    Value* size = l.as_int64(l.input(2));
    Value* to_the_end = l.emit("Equal", {size, l.add_ints({-1})});
    Value* end = l.emit("Where", {to_the_end, l.add_ints({kFarEnd}), l.emit("Add", {begin, size})});
    Ints axes;
    for (int64_t axis = 0; axis < count; ++axis) axes.push_back(axis);
    l.result(l.emit("Slice", {l.input(0), begin, end, l.add_ints(axes)}));
}

// (axes, 2) as ONNX has it: what comes before all axes, then what comes after.
Value* onnx_pads(Lowering& l, Value* paddings) {
    return l.reshape(l.emit("Transpose", {l.as_int64(paddings)}, attributes_of({{"perm", Ints{1, 0}}})),
                     {-1});
}

void lower_pad(Lowering& l) {
    std::vector<Value*> inputs{l.input(0), onnx_pads(l, l.input(1))};
    if (l.size() > 2) inputs.push_back(l.input(2));
    l.result(l.emit("Pad", std::move(inputs)));
}

Value* mirrored_part(Lowering& l, Value* x, int64_t start, int64_t stop, int64_t axis) {
    return l.emit("Slice",
                  {x, l.add_ints({start}), l.add_ints({stop}), l.add_ints({axis}), l.add_ints({-1})});
}

void lower_mirror_pad(Lowering& l) {
    const std::string mode = l.attributes().get_string("mode", "REFLECT");
    if (mode == "REFLECT")
        return l.result(l.emit("Pad", {l.input(0), onnx_pads(l, l.input(1))},
                               attributes_of({{"mode", std::string("reflect")}})));
    if (mode != "SYMMETRIC") not_lowered("mode {}", mode);
    // The border is repeated, which ONNX's Pad cannot do.
    const Ints pads = l.ints(1);
    Value* y = l.input(0);
    for (size_t axis = 0; axis < pads.size() / 2; ++axis) {
        const auto on = static_cast<int64_t>(axis);
        std::vector<Value*> parts;
        if (pads[2 * axis] > 0) parts.push_back(mirrored_part(l, y, pads[2 * axis] - 1, kFarBegin, on));
        parts.push_back(y);
        if (pads[2 * axis + 1] > 0) parts.push_back(mirrored_part(l, y, -1, -pads[2 * axis + 1] - 1, on));
        if (parts.size() > 1) y = l.emit("Concat", parts, attributes_of({{"axis", on}}));
    }
    l.result(y);
}

void lower_gather(Lowering& l) {
    const Ints axes = l.size() > 2 ? l.ints(2) : Ints{0};
    require(axes.size() == 1, "the axis must be one number");
    int64_t batch = l.attributes().get_int("batch_dims");
    if (batch == 0)
        return l.result(l.emit("Gather", {l.input(0), l.input(1)}, attributes_of({{"axis", axes[0]}})));
    const int64_t axis = axes[0] < 0 ? axes[0] + l.rank(l.input(0)) : axes[0];
    if (batch < 0) batch += l.rank(l.input(1));
    if (axis != batch) not_lowered("a gather along axis {} with {} batch axes", axis, batch);
    Value* indices = l.unsqueeze(l.as_int64(l.input(1)), {-1});
    l.result(l.emit("GatherND", {l.input(0), indices}, attributes_of({{"batch_dims", batch}})));
}

void lower_gather_nd(Lowering& l) { l.result(l.emit("GatherND", {l.input(0), l.as_int64(l.input(1))})); }

void lower_scatter_nd(Lowering& l) {
    Value* zeros = l.emit("Expand", {l.add_scalar(0, l.dtype()), l.as_int64(l.input(2))});
    l.result(l.emit("ScatterND", {zeros, l.as_int64(l.input(0)), l.input(1)},
                    attributes_of({{"reduction", std::string("add")}})));
}

void lower_scatter_update(Lowering& l) {
    l.result(l.emit("ScatterND", {l.input(0), l.as_int64(l.input(1)), l.input(2)}));
}

void lower_one_hot(Lowering& l) {
    Value* indices = l.as_int64(l.input(0));
    Value* depth = l.as_int64(l.input(1));
    // A negative index is no index here, while ONNX counts from the end.
    Value* negative = l.emit("Less", {indices, l.add_scalar(0, DType::i64)});
    indices = l.emit("Where", {negative, depth, indices});
    Value* values = join(l, {l.reshape(l.input(3), {1}), l.reshape(l.input(2), {1})});
    l.result(l.emit("OneHot", {indices, depth, values},
                    attributes_of({{"axis", l.attributes().get_int("axis", -1)}})));
}

void lower_where(Lowering& l) {
    l.result(l.emit("Transpose", {l.emit("NonZero", {l.input(0)})}, attributes_of({{"perm", Ints{1, 0}}})));
}

void lower_reverse(Lowering& l) {
    const Ints axes = l.ints(1);
    if (axes.empty()) return l.result(l.input(0));
    const size_t count = axes.size();
    l.result(l.emit("Slice", {l.input(0), l.add_ints(Ints(count, -1)), l.add_ints(Ints(count, kFarBegin)),
                              l.add_ints(axes), l.add_ints(Ints(count, -1))}));
}

constexpr std::array kIndexingRules{
    LowerRule{"StridedSlice", lower_strided_slice},
    LowerRule{"Slice", lower_slice},
    LowerRule{"Pad", lower_pad},
    LowerRule{"PadV2", lower_pad},
    LowerRule{"MirrorPad", lower_mirror_pad},
    LowerRule{"Gather", lower_gather},
    LowerRule{"GatherV2", lower_gather},
    LowerRule{"GatherNd", lower_gather_nd},
    LowerRule{"ScatterNd", lower_scatter_nd},
    LowerRule{"TensorScatterUpdate", lower_scatter_update},
    LowerRule{"OneHot", lower_one_hot},
    LowerRule{"Where", lower_where},
    LowerRule{"ReverseV2", lower_reverse},
};

}  // namespace

std::span<const LowerRule> indexing_rules() { return kIndexingRules; }

}  // namespace kilter::tensorflow
