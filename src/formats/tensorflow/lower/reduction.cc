// Reductions, arg-max and top-k, running sums.
#include <array>

#include "formats/tensorflow/lower/lowering.h"

namespace kilter::tensorflow {
namespace {

Value* reduce(Lowering& l, std::string_view op, Value* x) {
    Value* axes = l.reshape(l.as_int64(l.input(1)), {-1});
    // No axes mean nothing is reduced; in ONNX that must be asked for.
    const Attributes attributes = attributes_of(
        {{"keepdims", int64_t{l.attributes().get_bool("keep_dims")}}, {"noop_with_empty_axes", int64_t{1}}});
    if (const Tensor* tensor = l.constant(axes); tensor != nullptr && tensor->size() == 0)
        return op == "ReduceL2" ? l.emit("Abs", {x}) : x;
    return l.emit(op, {x, axes}, attributes);
}

void lower_reduce(Lowering& l) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNames{
        {{"Mean", "ReduceMean"},
         {"Sum", "ReduceSum"},
         {"Prod", "ReduceProd"},
         {"Max", "ReduceMax"},
         {"Min", "ReduceMin"},
         {"EuclideanNorm", "ReduceL2"}}};
    for (const auto& [from, to] : kNames)
        if (from == l.node().op) return l.result(reduce(l, to, l.input(0)));
}

void lower_logical(Lowering& l, std::string_view op) {
    l.result(l.cast(reduce(l, op, l.cast(l.input(0), DType::i32)), DType::boolean));
}

void lower_l2_loss(Lowering& l) {
    Value* sum = l.emit("ReduceSumSquare", {l.input(0)}, attributes_of({{"keepdims", int64_t{0}}}));
    l.result(l.emit("Mul", {sum, l.add_scalar(0.5, l.dtype())}));
}

void lower_arg(Lowering& l, std::string_view op) {
    const Ints axis = l.size() > 1 ? l.ints(1) : Ints{0};
    require(axis.size() == 1, "the axis must be one number");
    Value* index = l.emit(op, {l.input(0)}, attributes_of({{"axis", axis[0]}, {"keepdims", int64_t{0}}}));
    l.name_main(index);
    l.result(l.cast(index, l.attributes().get_type("output_type", kInt64).dtype()));
}

void top_k(Lowering& l, Value* k) {
    const std::vector<Value*> found = l.emit_many("TopK", {l.input(0), l.reshape(l.as_int64(k), {1})}, 2,
                                                  attributes_of({{"axis", int64_t{-1}}}));
    l.result(found[0], 0);
    l.result(l.as_index(found[1], "index_type"), 1);
}

void lower_cumulative(Lowering& l, std::string_view op) {
    l.result(l.emit(op, {l.input(0), l.input(1)},
                    attributes_of({{"exclusive", int64_t{l.attributes().get_bool("exclusive")}},
                                   {"reverse", int64_t{l.attributes().get_bool("reverse")}}})));
}

constexpr std::array kReductionRules{
    LowerRule{"Mean", lower_reduce},
    LowerRule{"Sum", lower_reduce},
    LowerRule{"Prod", lower_reduce},
    LowerRule{"Max", lower_reduce},
    LowerRule{"Min", lower_reduce},
    LowerRule{"EuclideanNorm", lower_reduce},
    LowerRule{"All", [](Lowering& l) { lower_logical(l, "ReduceMin"); }},
    LowerRule{"Any", [](Lowering& l) { lower_logical(l, "ReduceMax"); }},
    LowerRule{"L2Loss", lower_l2_loss},
    LowerRule{"ArgMax", [](Lowering& l) { lower_arg(l, "ArgMax"); }},
    LowerRule{"ArgMin", [](Lowering& l) { lower_arg(l, "ArgMin"); }},
    LowerRule{"TopKV2", [](Lowering& l) { top_k(l, l.input(1)); }},
    LowerRule{"TopK", [](Lowering& l) { top_k(l, l.add_ints({l.attributes().get_int("k")})); }},
    LowerRule{"Cumsum", [](Lowering& l) { lower_cumulative(l, "CumSum"); }},
    LowerRule{"Cumprod", [](Lowering& l) { lower_cumulative(l, "CumProd"); }},
};

}  // namespace

std::span<const LowerRule> reduction_rules() { return kReductionRules; }

}  // namespace kilter::tensorflow
