// Cutting pieces out, gathering, counting.
#include <cmath>
#include <limits>

#include "formats/mxnet/lower/lowering.h"

namespace kilter::mxnet {
namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

Value* slice(Lowering& l, Value* x, const Ints& begins, const Ints& ends, const Ints& axes,
             const Ints& steps) {
    return l.emit("Slice", {x, l.add_ints(begins), l.add_ints(ends), l.add_ints(axes), l.add_ints(steps)});
}

void lower_slice(Lowering& l) {
    const Parameters parameters = l.parameters();
    const auto begin = parameters.open_integers("begin"), end = parameters.open_integers("end"),
               step = parameters.open_integers("step");
    Ints begins, ends, axes, steps;
    for (size_t i = 0; i < begin.size(); ++i) {
        const int64_t by = i < step.size() ? step[i].value_or(1) : 1;
        if (by == 0) not_lowered("a step of 0");
        axes.push_back(static_cast<int64_t>(i));
        steps.push_back(by);
        begins.push_back(begin[i].value_or(by > 0 ? 0 : kEnd));
        ends.push_back(i < end.size() && end[i] ? *end[i] : by > 0 ? kEnd : -kEnd);
    }
    l.result(slice(l, l.input(), begins, ends, axes, steps));
}

void lower_slice_axis(Lowering& l) {
    const Parameters parameters = l.parameters();
    l.result(slice(l, l.input(), {parameters.integer("begin", 0)}, {parameters.integer("end", kEnd)},
                   {parameters.integer("axis", 0)}, {1}));
}

// As large as another array, along all or some axes.
void lower_slice_like(Lowering& l) {
    Value* x = l.input(0);
    Ints axes = l.parameters().integers("axes");
    if (axes.empty())
        for (int64_t axis = 0; axis < l.rank(x); ++axis) axes.push_back(axis);
    for (int64_t& axis : axes) axis = l.axis(axis, x);
    Value* ends = l.emit("Gather", {l.shape_of(l.input(1)), l.add_ints(axes)});
    l.result(l.emit("Slice", {x, l.add_ints(Ints(axes.size(), 0)), ends, l.add_ints(axes)}));
}

// Indices beyond the ends mean the first or the last: MXNet's mode "clip".
void lower_take(Lowering& l) {
    const Parameters parameters = l.parameters();
    const std::string mode = parameters.text("mode", "clip");
    if (mode != "clip") not_lowered("take with mode {}", mode);
    const int64_t axis = parameters.integer("axis", 0);
    Value* size = l.emit("Gather", {l.shape_of(l.input(0)), l.add_constant(Tensor::scalar<int64_t>(axis))});
    Value* last = l.emit("Sub", {size, l.add_scalar(1, DType::i64)});
    Value* index = l.emit("Clip", {l.as_int64(l.input(1)), l.add_scalar(0, DType::i64), last});
    l.result(l.emit("Gather", {l.input(0), index}, attributes_of({{"axis", axis}})));
}

// MXNet counts the index in the first axis, ONNX in the last.
void lower_gather_nd(Lowering& l) {
    const int rank = l.rank(l.input(1));
    Ints perm;
    for (int axis = 1; axis < rank; ++axis) perm.push_back(axis);
    perm.push_back(0);
    l.result(l.emit("GatherND", {l.input(0), l.transpose(l.as_int64(l.input(1)), perm)}));
}

// An index that is no class, a negative one too, switches nothing on; to ONNX a negative one counts from the end.
void lower_one_hot(Lowering& l) {
    const Parameters parameters = l.parameters();
    Value* index = l.as_int64(l.input());
    Value* depth = l.add_scalar(static_cast<double>(parameters.integer("depth", 1)), DType::i64);
    Value* negative = l.emit("Less", {index, l.add_scalar(0, DType::i64)});
    const DType dtype = parameters.dtype("dtype", DType::f32);
    Tensor values = Tensor::of<float>({2}, {static_cast<float>(parameters.real("off_value", 0)),
                                            static_cast<float>(parameters.real("on_value", 1))});
    l.result(l.emit(
        "OneHot", {l.emit("Where", {negative, depth, index}), depth, l.add_constant(values.converted(dtype))},
        attributes_of({{"axis", int64_t{-1}}})));
}

// 0, 1, 2, … along an axis of another array.
void lower_arange_like(Lowering& l) {
    const Parameters parameters = l.parameters();
    if (!parameters.has("axis")) not_lowered("numbers for all elements");
    if (parameters.integer("repeat", 1) != 1) not_lowered("repeated numbers");
    const DType dtype = l.input()->type.dtype;
    const int64_t axis = l.axis(parameters.integer("axis", 0), l.input());
    Value* size = l.emit("Gather", {l.shape_of(l.input()), l.add_constant(Tensor::scalar<int64_t>(axis))});
    Value* count = l.emit("Range", {l.add_scalar(0, DType::i64), size, l.add_scalar(1, DType::i64)});
    Value* scaled = l.emit("Mul", {l.cast(count, dtype), l.add_scalar(parameters.real("step", 1), dtype)});
    l.result(l.emit("Add", {scaled, l.add_scalar(parameters.real("start", 0), dtype)}));
}

void lower_arange(Lowering& l) {
    const Parameters parameters = l.parameters();
    double start = parameters.real("start", 0), stop = parameters.real("stop", 0);
    if (!parameters.has("stop")) std::swap(start, stop);
    const double step = parameters.real("step", 1);
    const int64_t repeat = parameters.integer("repeat", 1);
    const double count = std::ceil((stop - start) / step);
    if (repeat < 1 || !(count >= 0 && count * static_cast<double>(repeat) < 1e7))
        not_lowered("a range without end");
    std::vector<float> values;
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
        values.insert(values.end(), static_cast<size_t>(repeat),
                      static_cast<float>(start + static_cast<double>(i) * step));
    const auto size = static_cast<int64_t>(values.size());
    l.result(
        l.add_constant(Tensor::of<float>({size}, values).converted(parameters.dtype("dtype", DType::f32))));
}

void fill(Lowering& l, double value) {
    const Parameters parameters = l.parameters();
    const Ints shape = parameters.integers("shape");
    int64_t size = 1;
    for (const int64_t dim : shape) {
        if (dim <= 0 || dim > (1 << 24) / size) not_lowered("a shape of {}", parameters.text("shape"));
        size *= dim;
    }
    l.result(l.add_constant(Tensor::filled(parameters.dtype("dtype", DType::f32), shape, value)));
}

void lower_topk(Lowering& l) {
    const Parameters parameters = l.parameters();
    const std::string kind = parameters.text("ret_typ", "indices");
    if (kind != "indices" && kind != "value" && kind != "both") not_lowered("ret_typ {}", kind);
    // Without an axis: of the flattened array.
    const bool flat = l.node().find("axis") != nullptr && !parameters.has("axis");
    Value* x = flat ? l.reshape(l.input(), {-1}) : l.input();
    const int64_t axis = parameters.integer("axis", -1);
    // None means all of them.
    const int64_t count = parameters.integer("k", 1);
    Value* k = count > 0 ? l.add_ints({count}) : l.emit("Gather", {l.shape_of(x), l.add_ints({axis})});
    const std::vector<Value*> found = l.emit_many(
        "TopK", {x, k}, 2,
        attributes_of({{"axis", axis}, {"largest", int64_t{!parameters.flag("is_ascend", false)}}}));
    if (kind != "indices") l.result(found[0]);
    if (kind != "value") l.result(l.cast(found[1], parameters.dtype("dtype", DType::f32)));
}

// Elements behind a sequence's length become a value; time is the first axis unless told otherwise.
void lower_sequence_mask(Lowering& l) {
    const Parameters parameters = l.parameters();
    Value* x = l.input(0);
    if (!parameters.flag("use_sequence_length", false)) return l.result(l.emit("Identity", {x}));
    const int64_t axis = parameters.integer("axis", 0);
    const int rank = l.rank(x);
    Value* length = l.emit("Gather", {l.shape_of(x), l.add_constant(Tensor::scalar<int64_t>(axis))});
    Value* time = l.emit("Range", {l.add_scalar(0, DType::i64), length, l.add_scalar(1, DType::i64)});
    Ints over_batch(static_cast<size_t>(rank), 1), over_time(static_cast<size_t>(rank), 1);
    over_time[static_cast<size_t>(axis)] = -1;
    over_batch[static_cast<size_t>(1 - axis)] = -1;
    Value* inside =
        l.emit("Less", {l.reshape(time, over_time), l.reshape(l.as_int64(l.input(1)), over_batch)});
    l.result(l.emit("Where", {inside, x, l.scalar_like(parameters.real("value", 0), x)}));
}

constexpr LowerRule kIndexingRules[] = {
    {"slice", lower_slice},
    {"crop", lower_slice},
    {"slice_axis", lower_slice_axis},
    {"slice_like", lower_slice_like},
    {"take", lower_take},
    {"gather_nd", lower_gather_nd},
    {"one_hot", lower_one_hot},
    {"_contrib_arange_like", lower_arange_like},
    {"_arange", lower_arange},
    {"_zeros", [](Lowering& l) { fill(l, 0); }},
    {"_ones", [](Lowering& l) { fill(l, 1); }},
    {"_full", [](Lowering& l) { fill(l, l.parameters().real("value", 0)); }},
    {"topk", lower_topk},
    {"SequenceMask", lower_sequence_mask},
};

}  // namespace

std::span<const LowerRule> indexing_rules() { return kIndexingRules; }

}  // namespace kilter::mxnet
