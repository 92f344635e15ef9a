#include "passes/pass_test.h"

namespace kilter::lower_matmul_test {

using namespace testing;

TEST(LowerMatMul, KeepsTheFunctionInEveryBroadcastForm) {
    const std::vector<std::pair<Shape, Shape>> shapes{{{2, 3}, {3, 4}},
                                                      {{5, 2, 3}, {3, 4}},
                                                      {{2, 3}, {5, 3, 4}},
                                                      {{2, 1, 4, 3}, {5, 3, 1}},
                                                      {{1, 1}, {1, 1}}};
    for (const auto& [a, b] : shapes) {
        Graph graph;
        Value* product = graph.add("MatMul", {graph.add_input("a", {DType::f32, to_dims(a)}),
                                              graph.add_input("b", {DType::f32, to_dims(b)})});
        graph.add_output(product, "y");
        expect_keeps_function(graph, lower_matmul);
        EXPECT_EQ(graph.count("MatMul", kKilterDomain), 1U);
    }
}

TEST(LowerMatMul, KeepsTheFunctionOfGemm) {
    for (const int64_t trans_a : {0, 1})
        for (const int64_t trans_b : {0, 1})
            for (const Shape& c : {Shape{4}, Shape{1, 4}, Shape{}, Shape{1}, Shape{2, 1}, Shape{2, 4}})
                for (const bool constant : {false, true}) {
                    Graph graph;
                    Attributes attributes;
                    attributes.set("transA", trans_a);
                    attributes.set("transB", trans_b);
                    attributes.set("alpha", 0.5F);
                    attributes.set("beta", 2.0F);
                    Value* a = graph.add_input("a", {DType::f32, trans_a != 0 ? Dims{3, 2} : Dims{2, 3}});
                    Value* b = weights(graph, trans_b != 0 ? Shape{4, 3} : Shape{3, 4}, 1);
                    Value* addend =
                        constant ? weights(graph, c, 2) : graph.add_input("c", {DType::f32, to_dims(c)});
                    graph.add_output(graph.add("Gemm", {a, b, addend}, attributes, "fc"), "y");
                    expect_keeps_function(graph, lower_matmul);
                    EXPECT_EQ(graph.count("Gemm"), 0U);
                    EXPECT_EQ(find_node(graph, "MatMul", kKilterDomain)->name, "fc");
                }
}

TEST(LowerMatMul, DoesNotCopyATransposedConstant) {
    Graph graph;
    Value* w = weights(graph, {4, 3}, 1);
    Value* x = graph.add_input("x", {DType::f32, {2, 3}});
    graph.add_output(graph.add("Gemm", {x, w, weights(graph, {4}, 2)}, attribute<int64_t>("transB", 1)), "y");
    expect_keeps_function(graph, lower_matmul);
    EXPECT_EQ(graph.nodes()[0]->input(1), w);
}

TEST(LowerMatMul, TakesOverTransposesAndAComputedBias) {
    Graph graph;
    Value* a = graph.add_input("a", {DType::f32, {2, 3, 4}});
    Value* b = graph.add_input("b", {DType::f32, {2, 5, 3}});
    Value* bias = graph.add_input("bias", {DType::f32, {5}});
    Value* v = graph.add("MatMul", {graph.add("Transpose", {a}, ints_attribute("perm", {0, 2, 1})),
                                    graph.add("Transpose", {b}, ints_attribute("perm", {0, 2, 1}))});
    graph.add_output(graph.add("Add", {v, bias}), "y");
    expect_keeps_function(graph, lower_matmul);
    EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST(LowerMatMul, LeavesVectorsAndIntegers) {
    Graph graph;
    Value* a = graph.add_input("a", {DType::f32, {2, 3}});
    graph.add_output(graph.add("MatMul", {a, graph.add_input("v", {DType::f32, {3}})}), "vector");
    Value* i = graph.add_input("i", {DType::i32, {2, 2}});
    graph.add_output(graph.add("MatMul", {i, i}), "integer");
    expect_untouched(graph, lower_matmul);
}

TEST(LowerMatMul, LeavesTransposesOfOtherAxes) {
    Graph graph;
    Value* a = graph.add_input("a", {DType::f32, {2, 3, 4}});
    Value* b = graph.add_input("b", {DType::f32, {5, 4, 2}});
    Value* v = graph.add("MatMul", {a, graph.add("Transpose", {b}, ints_attribute("perm", {2, 1, 0}))});
    graph.add_output(v, "y");
    expect_keeps_function(graph, lower_matmul);
    EXPECT_EQ(graph.count("Transpose"), 1U);
}

}  // namespace kilter::lower_matmul_test
