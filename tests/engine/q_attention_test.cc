// Fused attention over bytes: every number of keys and queries a tile can meet, masks of every shape.
#include <fmt/format.h>

#include <cmath>

#include "engine/native/vnni.h"
#include "engine/qdq_graphs.h"

namespace kilter::engine::testing::q_attention_test {

struct Case {
    int64_t batch = 2, heads = 3, queries = 16, keys = 16, depth = 64, width = 64;
    Shape mask = {};
    bool k_transposed = false;
    bool dense = false;  // heads in front in memory, too
    Affine target = {0.01F, 120};
};

// NOLINTNEXTLINE: printed by gtest
std::ostream& operator<<(std::ostream& stream, const Case& c) {
    return stream << fmt::format("{}x{} heads, {} queries of {}, {} keys, values of {}, mask {}, {}{}",
                                 c.batch, c.heads, c.queries, c.depth, c.keys, c.width, to_string(c.mask),
                                 c.k_transposed ? "keys transposed " : "", c.dense ? "dense" : "");
}

void check(const Case& c) {
    SCOPED_TRACE(::testing::PrintToString(c));
    QdqGraph graph;
    const auto heads = [&](int64_t rows, int64_t columns, const Affine& affine, bool transposed) {
        if (c.dense) {
            const Shape shape =
                transposed ? Shape{c.batch, c.heads, columns, rows} : Shape{c.batch, c.heads, rows, columns};
            return graph.both(graph.input(shape, -2, 2), affine);
        }
        const std::vector<int64_t> perm =
            transposed ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3};
        return graph.op("Transpose",
                        {graph.both(graph.input({c.batch, rows, c.heads, columns}, -2, 2), affine)},
                        with("perm", perm));
    };
    Value* q = heads(c.queries, c.depth, {0.016F, 117}, false);
    Value* k = heads(c.keys, c.depth, {0.016F, 0, DType::i8}, c.k_transposed);
    Value* v = heads(c.keys, c.width, {0.016F, 0, DType::i8}, false);
    std::vector<Value*> inputs{q, k, v};
    if (!c.mask.empty()) inputs.push_back(graph.input(c.mask, -3, 0));
    Value* y = graph.op("Attention", inputs,
                        with("k_transposed", int64_t{c.k_transposed}, with("scale", 0.125F)), kKilterDomain);
    graph.output(graph.quantize(y, c.target));
    EXPECT_EQ(graph.count("QAttention"), 1);
    graph.expect_nearly_same();
    if (!has_vnni() || has_amx()) return;
    size_t fused = 0;
    for (const StepReport& step : graph.steps()) fused += step.kernel == "fused:avx512_vnni" ? 1 : 0;
    EXPECT_EQ(fused, 1);
}

TEST(QAttention, AgreesWithTheScalarKernelForEveryLength) {
    for (const int64_t queries : {1, 8, 13, 40})
        for (const int64_t keys : {1, 3, 16, 17, 48, 63, 64, 131}) check({.queries = queries, .keys = keys});
}

TEST(QAttention, TakesHeadsOfAnyWidth) {
    for (const int64_t depth : {4, 20, 32, 80})
        for (const int64_t width : {1, 16, 33, 80}) check({.keys = 21, .depth = depth, .width = width});
}

TEST(QAttention, TakesKeysInEitherOrderAndAnyLayout) {
    for (const bool k_transposed : {false, true})
        for (const bool dense : {false, true})
            check({.keys = 35, .k_transposed = k_transposed, .dense = dense});
}

TEST(QAttention, AddsMasksOfEveryShape) {
    for (const Shape& mask : {Shape{2, 1, 1, 19}, Shape{1, 1, 16, 19}, Shape{2, 3, 16, 19}, Shape{16, 19},
                              Shape{19}, Shape{1, 3, 1, 19}})
        check({.keys = 19, .mask = mask});
}

TEST(QAttention, WritesEveryTypeOfResult) {
    check({.target = {0.01F, 0}});
    check({.target = {0.01F, -7, DType::i8}});
}

TEST(QAttention, IgnoresKeysThatAreMaskedOut) {
    QdqGraph graph;
    Value* q = graph.both(graph.input({1, 2, 9, 16}, -2, 2), {0.016F, 117});
    Value* k = graph.both(graph.input({1, 2, 20, 16}, -2, 2), {0.016F, 0, DType::i8});
    Value* v = graph.both(graph.input({1, 2, 20, 16}, -2, 2), {0.016F, 0, DType::i8});
    Tensor mask = Tensor::filled(DType::f32, {1, 1, 1, 20}, 0.0);
    for (size_t i = 7; i < 20; ++i)
        mask.as_mutable<float>()[i] = i % 2 == 0 ? -INFINITY : std::numeric_limits<float>::lowest();
    Value* y = graph.op("Attention", {q, k, v, graph.graph().add_constant(mask)}, with("scale", 0.25F),
                        kKilterDomain);
    graph.output(graph.quantize(y, {0.01F, 120}));
    EXPECT_EQ(graph.count("QAttention"), 1);
    graph.expect_nearly_same();
}

}  // namespace kilter::engine::testing::q_attention_test
