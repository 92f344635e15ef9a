#include "passes/pass_test.h"

namespace kilter::sink_shapes_test {

using namespace testing;

TEST(SinkShapes, AsksTheEndOfAChain) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim(), 3, Dim(), Dim()}});
    Value* v = graph.add("Conv", {x, weights(graph, {4, 3, 1, 1}, 1)});
    Value* shape = graph.add("Shape", {v});
    Value* scaled = graph.add("Mul", {v, weights(graph, {1, 4, 1, 1}, 2)});
    Value* y = graph.add("Relu", {scaled});
    graph.add_output(y, "y");
    graph.add_output(shape, "shape");
    expect_keeps_function(graph, sink_shapes);
    EXPECT_EQ(find_node(graph, "Shape")->input(0), y);
    EXPECT_TRUE(fold_scale_shift(graph));
    EXPECT_TRUE(fuse_post_ops(graph));
}

TEST(SinkShapes, LeavesValuesWithSeveralReadersAndReadersThatWaitForTheShape) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim(), 3}});
    graph.add_output(graph.add("Add", {graph.add("Relu", {x}), graph.add("Abs", {x})}), "y");
    graph.add_output(graph.add("Shape", {x}), "shape");
    Value* z = graph.add_input("z", {DType::f32, {Dim(), 3}});
    Value* ones = graph.add("Expand", {scalar(graph, 1), graph.add("Shape", {z})});
    graph.add_output(graph.add("Add", {z, ones}), "sum");
    expect_untouched(graph, sink_shapes);
}

TEST(SinkShapes, LeavesConstantsThatEnlarge) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim(), 3}});
    graph.add_output(graph.add("Add", {x, weights(graph, {2, 3}, 1)}), "y");
    graph.add_output(graph.add("Shape", {x}), "shape");
    infer_types(graph);
    EXPECT_FALSE(sink_shapes(graph));
}

}  // namespace kilter::sink_shapes_test
