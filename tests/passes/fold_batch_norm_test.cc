#include "passes/pass_test.h"

namespace kilter::fold_batch_norm_test {

using namespace testing;

struct ConvCase {
    Shape input, weights;
    int64_t group = 1;
    bool bias = false;
};

std::vector<ConvCase> odd_convolutions() {
    return {{{1, 3, 5}, {4, 3, 2}},
            {{2, 4, 5, 7}, {6, 2, 3, 1}, 2, true},
            {{1, 3, 4, 4}, {3, 1, 1, 1}, 3},
            {{1, 2, 3, 3, 3}, {5, 2, 2, 2, 2}, 1, true}};
}

Value* batch_norm(Graph& graph, Value* x, int64_t channels) {
    return graph.add("BatchNormalization",
                     {x, weights(graph, {channels}, 11), weights(graph, {channels}, 12),
                      weights(graph, {channels}, 13), weights(graph, {channels}, 14, 0.1F, 2)},
                     attribute("epsilon", 1e-3F), "bn");
}

Value* convolution(Graph& graph, Value* x, const ConvCase& c, std::string_view op = "Conv") {
    std::vector<Value*> inputs{x, weights(graph, c.weights, 1)};
    const int64_t channels = op == "Conv" ? c.weights[0] : c.weights[1] * c.group;
    if (c.bias) inputs.push_back(weights(graph, {channels}, 2));
    return graph.add(op, inputs, attribute("group", c.group), "conv");
}

TEST(FoldBatchNorm, KeepsTheFunctionOfConvolutions) {
    for (const ConvCase& c : odd_convolutions()) {
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, to_dims(c.input)});
        graph.add_output(batch_norm(graph, convolution(graph, x, c), c.weights[0]), "y");
        expect_keeps_function(graph, fold_batch_norm);
        EXPECT_EQ(graph.count("BatchNormalization"), 0U);
        EXPECT_EQ(find_node(graph, "Conv")->name, "conv");
        EXPECT_EQ(find_node(graph, "Conv")->origins, std::vector<std::string>{"bn"});
    }
}

TEST(FoldBatchNorm, KeepsTheFunctionOfTransposedConvolutions) {
    const std::vector<ConvCase> cases{{{1, 3, 4, 5}, {3, 2, 2, 3}}, {{2, 4, 3}, {4, 3, 2}, 2, true}};
    for (const ConvCase& c : cases) {
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, to_dims(c.input)});
        graph.add_output(batch_norm(graph, convolution(graph, x, c, "ConvTranspose"), c.weights[1] * c.group),
                         "y");
        expect_keeps_function(graph, fold_batch_norm);
        EXPECT_EQ(graph.count("BatchNormalization"), 0U);
    }
}

TEST(FoldBatchNorm, KeepsTheFunctionOfGemm) {
    for (const int64_t transposed : {0, 1}) {
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 3}});
        Value* w = weights(graph, transposed != 0 ? Shape{5, 3} : Shape{3, 5}, 1);
        graph.add_output(
            batch_norm(graph,
                       graph.add("Gemm", {x, w, weights(graph, {5}, 2)}, attribute("transB", transposed)), 5),
            "y");
        infer_types(graph);
        lower_matmul(graph);
        expect_keeps_function(graph, fold_batch_norm);
        EXPECT_EQ(graph.nodes().size(), 1U);
    }
}

TEST(FoldBatchNorm, LeavesSharedWeightsAlone) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 3, 4, 4}});
    Value* w = weights(graph, {3, 3, 1, 1}, 1);
    graph.add_output(batch_norm(graph, graph.add("Conv", {x, w}), 3), "normalized");
    graph.add_output(graph.add("Conv", {x, w}), "plain");
    expect_keeps_function(graph, fold_batch_norm);
}

TEST(FoldBatchNorm, LeavesConvolutionsWithOtherReaders) {
    const ConvCase c{{1, 3, 4, 4}, {4, 3, 3, 3}};
    Graph read;
    Value* y = convolution(read, read.add_input("x", {DType::f32, to_dims(c.input)}), c);
    read.add_output(batch_norm(read, y, 4), "y");
    read.add_output(read.add("Relu", {y}), "z");
    expect_untouched(read, fold_batch_norm);
    Graph fetched;
    y = convolution(fetched, fetched.add_input("x", {DType::f32, to_dims(c.input)}), c);
    fetched.add_output(batch_norm(fetched, y, 4), "y");
    fetched.add_output(y, "z");
    expect_untouched(fetched, fold_batch_norm);
}

TEST(FoldBatchNorm, LeavesOtherAxesThanTheColumnsOfAProduct) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 4, 3}});
    graph.add_output(batch_norm(graph, graph.add("MatMul", {x, weights(graph, {3, 4}, 1)}), 4), "y");
    infer_types(graph);
    lower_matmul(graph);
    expect_untouched(graph, fold_batch_norm);
}

}  // namespace kilter::fold_batch_norm_test
