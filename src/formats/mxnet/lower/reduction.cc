// Reductions over axes, and the place of the largest element.
#include <algorithm>
#include <array>
#include <numeric>

#include "formats/mxnet/lower/lowering.h"

namespace kilter::mxnet {
namespace {

// Nothing named means all axes; `exclude` turns the choice around.
std::optional<Ints> chosen_axes(const Lowering& l, const Value* x) {
    const Parameters parameters = l.parameters();
    Ints axes = parameters.integers("axis");
    if (!parameters.flag("exclude", false)) {
        if (axes.empty()) return std::nullopt;
        return axes;
    }
    for (int64_t& axis : axes) axis = l.axis(axis, x);
    Ints others(static_cast<size_t>(l.rank(x)));
    std::iota(others.begin(), others.end(), 0);
    std::erase_if(others, [&](int64_t axis) { return std::ranges::find(axes, axis) != axes.end(); });
    return others;
}

Value* reduce(Lowering& l, std::string_view op, Value* x) {
    std::vector<Value*> inputs{x};
    const std::optional<Ints> axes = chosen_axes(l, x);
    if (axes && axes->empty()) return x;
    if (axes) inputs.push_back(l.add_ints(*axes));
    const bool keep = l.parameters().flag("keepdims", false);
    Value* y = l.emit(op, std::move(inputs), attributes_of({{"keepdims", int64_t{keep}}}));
    // Of everything, which is a scalar even when the rank of `x` is not known: see Lowering::result.
    return axes || keep || x->type.shape ? y : l.reshape(y, {1});
}

void lower_reduction(Lowering& l, std::string_view op) { l.result(reduce(l, op, l.input())); }

void lower_norm(Lowering& l) {
    const int64_t order = l.parameters().integer("ord", 2);
    if (order != 1 && order != 2) not_lowered("a norm of order {}", order);
    l.result(reduce(l, order == 1 ? "ReduceL1" : "ReduceL2", l.input()));
}

// MXNet gives the place as a float.
void lower_arg(Lowering& l, std::string_view op) {
    if (!l.parameters().has("axis")) not_lowered("the place in the whole array");
    Value* place = l.emit(op, {l.input()},
                          attributes_of({{"axis", l.parameters().integer("axis", 0)},
                                         {"keepdims", int64_t{l.parameters().flag("keepdims", false)}}}));
    l.result(l.cast(place, DType::f32));
}

constexpr std::array kReductionRules{
    LowerRule{"mean", [](Lowering& l) { lower_reduction(l, "ReduceMean"); }},
    LowerRule{"sum", [](Lowering& l) { lower_reduction(l, "ReduceSum"); }},
    LowerRule{"sum_axis", [](Lowering& l) { lower_reduction(l, "ReduceSum"); }},
    LowerRule{"max", [](Lowering& l) { lower_reduction(l, "ReduceMax"); }},
    LowerRule{"max_axis", [](Lowering& l) { lower_reduction(l, "ReduceMax"); }},
    LowerRule{"min", [](Lowering& l) { lower_reduction(l, "ReduceMin"); }},
    LowerRule{"min_axis", [](Lowering& l) { lower_reduction(l, "ReduceMin"); }},
    LowerRule{"prod", [](Lowering& l) { lower_reduction(l, "ReduceProd"); }},
    LowerRule{"norm", lower_norm},
    LowerRule{"argmax", [](Lowering& l) { lower_arg(l, "ArgMax"); }},
    LowerRule{"argmin", [](Lowering& l) { lower_arg(l, "ArgMin"); }},
};

}  // namespace

std::span<const LowerRule> reduction_rules() { return kReductionRules; }

}  // namespace kilter::mxnet
