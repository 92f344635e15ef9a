#include "passes/pass_test.h"

namespace kilter::remove_identities_test {

using namespace testing;

TEST(RemoveIdentities, RemovesWhatReturnsItsInput) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3, 4}});
    Value* v = graph.add("Identity", {x});
    v = graph.add("Reshape", {v, ints(graph, {2, -1, 4})});
    v = graph.add("Transpose", {v}, ints_attribute("perm", {0, 1, 2}));
    v = graph.add("Cast", {v}, attribute<int64_t>("to", 1));
    v = graph.add("Slice", {v, ints(graph, {0}), ints(graph, {100}), ints(graph, {1})});
    v = graph.add("Pad", {v, ints(graph, {0, 0, 0, 0, 0, 0})});
    v = graph.add("Expand", {v, ints(graph, {1, 4})});
    v = graph.add("Concat", {v}, attribute<int64_t>("axis", 1));
    v = graph.add("Mul", {scalar(graph, 1), v});
    v = graph.add("Sub", {v, scalar(graph, 0)});
    v = graph.add("Relu", {v});
    graph.add_output(v, "y");
    expect_keeps_function(graph, remove_identities);
    EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST(RemoveIdentities, KeepsAnOutputThatIsAnInput) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2}});
    graph.add_output(graph.add("Identity", {x}), "same");
    graph.add_output(graph.add("Relu", {x}), "y");
    expect_keeps_function(graph, remove_identities);
}

TEST(RemoveIdentities, BroadcastingNeedsNoExpand) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 3, 4}});
    Value* small = graph.add_input("small", {DType::f32, {3, 1}});
    Value* expanded = graph.add("Expand", {small, graph.add("Shape", {x})});
    graph.add_output(graph.add("Mul", {x, expanded}), "y");
    expect_keeps_function(graph, remove_identities);
    EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST(RemoveIdentities, LeavesAnExpandThatGivesTheShape) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 4}});
    Value* expanded = graph.add("Expand", {x, ints(graph, {3, 4})});
    graph.add_output(graph.add("Add", {expanded, expanded}), "y");
    graph.add_output(graph.add("Mul", {expanded, x}), "z");
    expect_untouched(graph, remove_identities);
}

TEST(RemoveIdentities, LeavesWhatChangesShapeOrValues) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3}});
    graph.add_output(graph.add("Reshape", {x, ints(graph, {3, 2})}), "a");
    graph.add_output(graph.add("Transpose", {x}), "b");
    graph.add_output(
        graph.add("Slice", {x, ints(graph, {-1}), ints(graph, {-100}), ints(graph, {1}), ints(graph, {-1})}),
        "c");
    graph.add_output(graph.add("Expand", {x, ints(graph, {2, 2, 3})}), "d");
    graph.add_output(graph.add("Sub", {scalar(graph, 0), x}), "e");
    graph.add_output(graph.add("Mul", {x, graph.add_constant(Tensor::of<float>({1, 1, 1}, {1}))}), "f");
    expect_untouched(graph, remove_identities);
}

}  // namespace kilter::remove_identities_test
