// Products of matrices, and look-ups in tables.
#include <array>

#include "formats/mxnet/lower/lowering.h"

namespace kilter::mxnet {
namespace {

void lower_fully_connected(Lowering& l) {
    const Parameters parameters = l.parameters();
    const bool no_bias = parameters.flag("no_bias", false);
    if (parameters.flag("flatten", true)) {
        const bool matrix = l.input()->type.shape && l.rank(l.input()) == 2;
        Value* x = matrix ? l.input() : l.emit("Flatten", {l.input()}, attributes_of({{"axis", int64_t{1}}}));
        std::vector<Value*> inputs{x, l.input(1)};
        if (!no_bias) inputs.push_back(l.input(2));
        l.result(l.emit("Gemm", std::move(inputs), attributes_of({{"transB", int64_t{1}}})));
        return;
    }
    Value* product = l.emit("MatMul", {l.input(), l.transpose(l.input(1), {1, 0})});
    l.name_main(product);
    l.result(no_bias ? product : l.emit("Add", {product, l.input(2)}));
}

// Products over the last axis of the left and the first of the right side; matrices only.
void lower_dot(Lowering& l) {
    if (l.rank(l.input(0)) != 2 || l.rank(l.input(1)) != 2)
        not_lowered("a product of other things than matrices");
    const Parameters parameters = l.parameters();
    l.result(l.emit("Gemm", {l.input(0), l.input(1)},
                    attributes_of({{"transA", int64_t{parameters.flag("transpose_a", false)}},
                                   {"transB", int64_t{parameters.flag("transpose_b", false)}}})));
}

void lower_batch_dot(Lowering& l) {
    const auto side = [&](size_t index, const char* flag) {
        Value* value = l.input(index);
        return l.parameters().flag(flag, false) ? l.transpose(value, {0, 2, 1}) : value;
    };
    l.result(l.emit("MatMul", {side(0, "transpose_a"), side(1, "transpose_b")}));
}

// Indices beyond the ends mean the first or the last row.
void lower_embedding(Lowering& l) {
    const auto last = static_cast<double>(l.parameters().integer("input_dim", 1) - 1);
    Value* index =
        l.emit("Clip", {l.as_int64(l.input(0)), l.add_scalar(0, DType::i64), l.add_scalar(last, DType::i64)});
    l.result(l.emit("Gather", {l.input(1), index}));
}

constexpr std::array kProductRules{
    LowerRule{"FullyConnected", lower_fully_connected},
    LowerRule{"dot", lower_dot},
    LowerRule{"batch_dot", lower_batch_dot},
    LowerRule{"Embedding", lower_embedding},
};

}  // namespace

std::span<const LowerRule> product_rules() { return kProductRules; }

}  // namespace kilter::mxnet
