#include "passes/pass_test.h"

namespace kilter::sink_transposes_test {

using namespace testing;

Value* to_nchw(Graph& graph, Value* x) {
    return graph.add("Transpose", {x}, ints_attribute("perm", {0, 3, 1, 2}));
}
Value* to_nhwc(Graph& graph, Value* x) {
    return graph.add("Transpose", {x}, ints_attribute("perm", {0, 2, 3, 1}));
}

TEST(SinkTransposes, CancelsPairs) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3, 4, 5}});
    graph.add_output(graph.add("Relu", {to_nchw(graph, to_nhwc(graph, x))}), "y");
    expect_keeps_function(graph, sink_transposes);
    EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST(SinkTransposes, PassesEverythingBetweenConvolutions) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 6, 7, 3}});
    Value* v = to_nhwc(graph, graph.add("Conv", {to_nchw(graph, x), weights(graph, {4, 3, 3, 3}, 1)}));
    v = graph.add("Relu", {graph.add("Add", {v, weights(graph, {4}, 2)})});
    Value* residual = graph.add("Mul", {weights(graph, {1, 1, 4}, 3), v});
    Value* w = to_nhwc(graph, graph.add("Conv", {to_nchw(graph, residual), weights(graph, {4, 4, 1, 1}, 4)}));
    v = graph.add("Add", {w, residual});
    v = graph.add("Concat", {v, residual}, attribute<int64_t>("axis", -1));
    v = graph.add("Pad", {v, ints(graph, {0, 1, 2, 0, 0, 0, 1, 0})});
    v = graph.add("Clip", {v, scalar(graph, 0), scalar(graph, 6)});
    v = graph.add("Slice", {v, ints(graph, {0, 1}), ints(graph, {5, 100}), ints(graph, {2, 1})});
    v = to_nhwc(graph, graph.add("Conv", {to_nchw(graph, v), weights(graph, {5, 8, 2, 2}, 5)}));
    graph.add_output(graph.add("ReduceMean", {v, ints(graph, {1, 2})}, attribute<int64_t>("keepdims", 0)),
                     "y");
    expect_keeps_function(graph, sink_transposes);
    for (int i = 0; i < 3; ++i) remove_identities(graph);
    EXPECT_EQ(graph.count("Transpose"), 1U) << print(graph);
}

TEST(SinkTransposes, KeepsAxesOfReductions) {
    for (const int64_t keep : {0, 1}) {
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, {2, 3, 4, 5}});
        Value* v = graph.add("Transpose", {x}, ints_attribute("perm", {3, 0, 2, 1}));
        graph.add_output(graph.add("ReduceMax", {v, ints(graph, {-2})}, attribute("keepdims", keep)), "y");
        expect_keeps_function(graph, sink_transposes);
    }
}

TEST(SinkTransposes, MovesOfUnitAxesAreReshapes) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 7, 1, 1}});
    graph.add_output(to_nhwc(graph, x), "y");
    expect_keeps_function(graph, sink_transposes);
    EXPECT_EQ(graph.count("Reshape"), 1U);
}

TEST(SinkTransposes, LeavesTransposesThatWouldMultiply) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3, 4, 5}});
    Value* v = to_nhwc(graph, x);
    graph.add_output(graph.add("Relu", {v}), "a");
    graph.add_output(graph.add("Softmax", {v}), "b");
    Value* other = graph.add_input("other", {DType::f32, {2, 4, 5, 3}});
    graph.add_output(graph.add("Add", {to_nhwc(graph, x), other}), "c");
    expect_untouched(graph, sink_transposes);
}

}  // namespace kilter::sink_transposes_test
