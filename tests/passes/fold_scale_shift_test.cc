#include "passes/pass_test.h"

namespace kilter::fold_scale_shift_test {

using namespace testing;

TEST(FoldScaleShift, FoldsASpelledOutBatchNorm) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3, 5, 4}});
    Value* v = graph.add("Conv", {x, weights(graph, {4, 3, 2, 2}, 1)}, {}, "conv");
    v = graph.add("Sub", {v, weights(graph, {1, 4, 1, 1}, 2)}, {}, "mean");
    v = graph.add("Div", {v, weights(graph, {4, 1, 1}, 3, 0.5F, 2)}, {}, "deviation");
    v = graph.add("Mul", {weights(graph, {1, 4, 1, 1}, 4), v}, {}, "gamma");
    v = graph.add("Add", {v, weights(graph, {4, 1, 1}, 5)}, {}, "beta");
    graph.add_output(v, "y");
    expect_keeps_function(graph, fold_scale_shift);
    ASSERT_EQ(graph.nodes().size(), 1U);
    EXPECT_EQ(graph.nodes()[0]->name, "conv");
    EXPECT_EQ(graph.nodes()[0]->origins, (std::vector<std::string>{"mean", "deviation", "gamma", "beta"}));
}

TEST(FoldScaleShift, FoldsScalarsInEveryPosition) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 2, 5}});
    Value* v = graph.add("ConvTranspose", {x, weights(graph, {2, 3, 2}, 1), weights(graph, {3}, 2)});
    v = graph.add("Sub", {scalar(graph, 0.5F), v});
    v = graph.add("Mul", {v, graph.add_constant(Tensor::of<float>({1, 1, 1}, {3}))});
    v = graph.add("Add", {scalar(graph, -2), v});
    graph.add_output(v, "y");
    expect_keeps_function(graph, fold_scale_shift);
    EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST(FoldScaleShift, FoldsTheBiasOfAProduct) {
    for (const Shape& bias : {Shape{5}, Shape{1, 5}, Shape{1, 1, 5}}) {
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, {2, 4, 3}});
        Value* product = graph.add("MatMul", {x, weights(graph, {3, 5}, 1)});
        graph.add_output(graph.add("Add", {weights(graph, bias, 2), product}), "y");
        infer_types(graph);
        ASSERT_TRUE(lower_matmul(graph));
        expect_keeps_function(graph, fold_scale_shift);
        EXPECT_EQ(graph.nodes().size(), 1U);
    }
}

TEST(FoldScaleShift, KeepsTheConstantThatIsTheBias) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3}});
    Value* bias = graph.add_constant(random_tensor({5}, 2), "bias");
    graph.add_output(graph.add("Add", {graph.add("MatMul", {x, weights(graph, {3, 5}, 1)}), bias}), "y");
    infer_types(graph);
    ASSERT_TRUE(lower_matmul(graph));
    expect_keeps_function(graph, fold_scale_shift);
    EXPECT_EQ(graph.nodes()[0]->input(2), bias);
}

TEST(FoldScaleShift, ScalesAProductOfActivations) {
    Graph graph;
    Value* a = graph.add_input("a", {DType::f32, {2, 4, 3}});
    Value* b = graph.add_input("b", {DType::f32, {2, 3, 5}});
    graph.add_output(graph.add("Div", {graph.add("MatMul", {a, b}), scalar(graph, 8)}), "y");
    infer_types(graph);
    ASSERT_TRUE(lower_matmul(graph));
    expect_keeps_function(graph, fold_scale_shift);
    EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST(FoldScaleShift, LooksThroughMovedElements) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 4, 6}});
    Value* v = graph.add("MatMul", {x, weights(graph, {6, 6}, 1)});
    v = graph.add("Transpose", {graph.add("Reshape", {v, ints(graph, {2, 4, 2, 3})})},
                  ints_attribute("perm", {0, 2, 1, 3}));
    graph.add_output(graph.add("Mul", {v, scalar(graph, 0.125F)}), "y");
    infer_types(graph);
    ASSERT_TRUE(lower_matmul(graph));
    expect_keeps_function(graph, fold_scale_shift);
    EXPECT_EQ(graph.count("Mul"), 0U);
}

TEST(FoldScaleShift, LeavesWhatIsNotPerChannel) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 3, 4, 3}});
    Value* w = weights(graph, {3, 3, 1, 1}, 1);
    graph.add_output(graph.add("Mul", {graph.add("Conv", {x, w}), weights(graph, {3}, 2)}), "last_axis");
    graph.add_output(graph.add("Add", {graph.add("Conv", {x, w}), weights(graph, {2, 3, 1, 1}, 3)}),
                     "enlarged");
    graph.add_output(graph.add("Div", {scalar(graph, 1), graph.add("Conv", {x, w})}), "reciprocal");
    graph.add_output(graph.add("Add", {graph.add("Conv", {x, w}),
                                       graph.add_constant(Tensor::of<float>({1, 1, 1, 1, 1}, {1}))}),
                     "rank");
    expect_untouched(graph, fold_scale_shift);
}

TEST(FoldScaleShift, LeavesValuesWithOtherReaders) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 3, 4, 4}});
    Value* v = graph.add("Conv", {x, weights(graph, {2, 3, 1, 1}, 1)});
    graph.add_output(graph.add("Mul", {v, scalar(graph, 2)}), "y");
    graph.add_output(v, "z");
    expect_untouched(graph, fold_scale_shift);
}

}  // namespace kilter::fold_scale_shift_test
