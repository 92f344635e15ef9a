#include "passes/pass_test.h"

namespace kilter::simplify_reshapes_test {

using namespace testing;

TEST(SimplifyReshapes, MergesAChain) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 4, 1, 6}});
    Value* v = graph.add("Squeeze", {x, ints(graph, {2})});
    v = graph.add("Unsqueeze", {v, ints(graph, {0, -1})});
    v = graph.add("Flatten", {v}, attribute<int64_t>("axis", 2));
    graph.add_output(graph.add("Relu", {graph.add("Reshape", {v, ints(graph, {-1, 8, 3})})}), "y");
    expect_keeps_function(graph, simplify_reshapes);
    EXPECT_EQ(graph.nodes().size(), 2U) << print(graph);
}

TEST(SimplifyReshapes, KeepsLinksThatOthersRead) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 6}});
    Value* v = graph.add("Reshape", {x, ints(graph, {3, 4})});
    graph.add_output(v, "middle");
    graph.add_output(graph.add("Reshape", {v, ints(graph, {4, 3})}), "y");
    expect_keeps_function(graph, simplify_reshapes);
}

TEST(SimplifyReshapes, MakesAComputedShapeConstant) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), Dim("length"), 6}});
    Value* shape = graph.add("Shape", {x});
    Value* leading = graph.add("Slice", {shape, ints(graph, {0}), ints(graph, {2}), ints(graph, {0})});
    Value* target = graph.add("Concat", {leading, ints(graph, {2, 3})}, attribute<int64_t>("axis", 0));
    graph.add_output(graph.add("Reshape", {x, target}), "y");
    expect_keeps_function(graph, simplify_reshapes);
    EXPECT_EQ(graph.nodes().size(), 1U) << print(graph);
}

TEST(SimplifyReshapes, LeavesSingleOperators) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 1, 6}});
    graph.add_output(graph.add("Squeeze", {x, ints(graph, {1})}), "a");
    graph.add_output(graph.add("Reshape", {x, ints(graph, {3, 4})}), "b");
    expect_untouched(graph, simplify_reshapes);
}

}  // namespace kilter::simplify_reshapes_test
