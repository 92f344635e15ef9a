// The fused products of GluonNLP's attention. Queries, keys and values of all heads lie interleaved in one array of
// (length, batch, heads x 3 x width).
#include <cmath>

#include "formats/mxnet/lower/lowering.h"

namespace kilter::mxnet {
namespace {

struct Interleaved {
    int64_t heads, kinds, width;
};

Interleaved read_layout(const Lowering& l, const Value* x, int64_t kinds) {
    const int64_t heads = l.parameters().integer("heads", 1);
    const Dims& dims = l.dims(x);
    if (dims.size() != 3 || !dims[2].known() || heads < 1 || dims[2].value % (heads * kinds) != 0)
        not_lowered("the width of '{}' is not known, or no multiple of {} heads", x->name(), heads);
    return {heads, kinds, dims[2].value / (heads * kinds)};
}

// Kind `which` as (batch, heads, length, width).
Value* take_kind(Lowering& l, Value* x, const Interleaved& layout, int64_t which) {
    Value* parts = l.reshape(x, {0, 0, layout.heads, layout.kinds, layout.width});
    if (layout.kinds > 1)
        parts = l.emit("Slice", {parts, l.add_ints({which}), l.add_ints({which + 1}), l.add_ints({3})});
    Value* kind = l.emit("Squeeze", {parts, l.add_ints({3})});
    return l.emit("Transpose", {kind}, attributes_of({{"perm", Ints{1, 2, 0, 3}}}));
}

// The first two axes of a value of rank 4 as one: batch and heads.
Value* merge_heads(Lowering& l, Value* value) {
    Value* shape = l.shape_of(value);
    Value* rest = l.emit("Slice", {shape, l.add_ints({2}), l.add_ints({4})});
    return l.emit("Reshape",
                  {value, l.emit("Concat", {l.add_ints({-1}), rest}, attributes_of({{"axis", int64_t{0}}}))});
}

void scores(Lowering& l, Value* queries, Value* keys, int64_t width) {
    Value* scaled =
        l.emit("Mul", {queries, l.scalar_like(1 / std::sqrt(static_cast<double>(width)), queries)});
    Value* product = l.emit("MatMul", {scaled, l.transpose(keys, {0, 1, 3, 2})});
    l.name_main(product);
    l.result(merge_heads(l, product));
}

// (batch x heads, length, length) times values, back to (length, batch, heads x width).
void mix(Lowering& l, Value* values, Value* weights, const Interleaved& layout) {
    Value* shape = l.shape_of(weights);
    Value* rest = l.emit("Slice", {shape, l.add_ints({1}), l.add_ints({3})});
    Value* apart = l.emit("Reshape", {weights, l.emit("Concat", {l.add_ints({-1, layout.heads}), rest},
                                                      attributes_of({{"axis", int64_t{0}}}))});
    Value* product = l.emit("MatMul", {apart, values});
    l.name_main(product);
    Value* ordered = l.emit("Transpose", {product}, attributes_of({{"perm", Ints{2, 0, 1, 3}}}));
    l.result(l.reshape(ordered, {0, 0, layout.heads * layout.width}));
}

void lower_self_scores(Lowering& l) {
    const Interleaved layout = read_layout(l, l.input(), 3);
    scores(l, take_kind(l, l.input(), layout, 0), take_kind(l, l.input(), layout, 1), layout.width);
}

void lower_self_mix(Lowering& l) {
    const Interleaved layout = read_layout(l, l.input(0), 3);
    mix(l, take_kind(l, l.input(0), layout, 2), l.input(1), layout);
}

void lower_cross_scores(Lowering& l) {
    const Interleaved queries = read_layout(l, l.input(0), 1);
    const Interleaved keys = read_layout(l, l.input(1), 2);
    scores(l, take_kind(l, l.input(0), queries, 0), take_kind(l, l.input(1), keys, 0), queries.width);
}

void lower_cross_mix(Lowering& l) {
    const Interleaved layout = read_layout(l, l.input(0), 2);
    mix(l, take_kind(l, l.input(0), layout, 1), l.input(1), layout);
}

void lower_div_sqrt_dim(Lowering& l) {
    const Dims& dims = l.dims(l.input());
    if (dims.empty() || !dims.back().known()) not_lowered("the last dimension is not known");
    l.result(l.emit(
        "Div", {l.input(), l.scalar_like(std::sqrt(static_cast<double>(dims.back().value)), l.input())}));
}

constexpr LowerRule kAttentionRules[] = {
    {"_contrib_interleaved_matmul_selfatt_qk", lower_self_scores},
    {"_contrib_interleaved_matmul_selfatt_valatt", lower_self_mix},
    {"_contrib_interleaved_matmul_encdec_qk", lower_cross_scores},
    {"_contrib_interleaved_matmul_encdec_valatt", lower_cross_mix},
    {"_contrib_div_sqrt_dim", lower_div_sqrt_dim},
};

}  // namespace

std::span<const LowerRule> attention_rules() { return kAttentionRules; }

}  // namespace kilter::mxnet
