#include "passes/pass_test.h"

namespace kilter::fold_constants_test {

using namespace testing;

TEST(FoldConstants, ComputesWhatDependsOnConstantsOnly) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3}});
    Value* table = graph.add("Transpose", {graph.add("Mul", {weights(graph, {3, 2}, 1), scalar(graph, 2)})});
    graph.add_output(graph.add("Add", {x, table}), "y");
    expect_keeps_function(graph, fold_constants);
    EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST(FoldConstants, KnowsStaticShapes) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3, 4}});
    graph.add_output(graph.add("Shape", {x}), "shape");
    graph.add_output(graph.add("Size", {x}), "size");
    graph.add_output(graph.add("Shape", {x}, attribute<int64_t>("start", -2)), "tail");
    expect_keeps_function(graph, fold_constants);
    EXPECT_TRUE(graph.nodes().empty());
}

TEST(FoldConstants, KnowsTheKnownPartOfAShape) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 5, 4}});
    Value* shape = graph.add("Shape", {x});
    graph.add_output(graph.add("Gather", {shape, graph.add_constant(Tensor::scalar<int64_t>(1))}), "one");
    graph.add_output(graph.add("Slice", {shape, ints(graph, {1}), ints(graph, {3}), ints(graph, {0})}),
                     "some");
    expect_keeps_function(graph, fold_constants);
    EXPECT_TRUE(graph.nodes().empty());
}

TEST(FoldConstants, LeavesUnknownDimensions) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 5}});
    Value* shape = graph.add("Shape", {x});
    graph.add_output(graph.add("Gather", {shape, graph.add_constant(Tensor::scalar<int64_t>(0))}), "batch");
    expect_untouched(graph, fold_constants);
}

TEST(FoldConstants, LeavesHugeResults) {
    Graph graph;
    graph.add_output(graph.add("Expand", {scalar(graph, 1), ints(graph, {1 << 14, 1 << 14})}), "y");
    expect_untouched(graph, fold_constants);
    Graph absurd;
    absurd.add_output(absurd.add("Expand", {scalar(absurd, 1), ints(absurd, {1LL << 40, 1LL << 40})}), "y");
    expect_untouched(absurd, fold_constants);
}

}  // namespace kilter::fold_constants_test
