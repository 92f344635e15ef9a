#include "passes/pass_test.h"

namespace kilter::simplify_clips_test {

using namespace testing;

Graph with_input() {
    Graph graph;
    graph.add_input("x", {DType::f32, {5, 7}});
    return graph;
}

void expect_single(Graph& graph, std::string_view op) {
    expect_keeps_function(graph, simplify_clips);
    ASSERT_EQ(graph.nodes().size(), 1U) << print(graph);
    EXPECT_EQ(graph.nodes()[0]->op(), op);
}

TEST(SimplifyClips, MergesLimits) {
    Graph relu6 = with_input();
    relu6.add_output(relu6.add("Min", {scalar(relu6, 1.5F), relu6.add("Relu", {relu6.inputs()[0]})}), "y");
    expect_single(relu6, "Clip");
    Graph chain = with_input();
    Value* v = chain.add("Clip", {chain.inputs()[0], scalar(chain, -1), scalar(chain, 0.5F)});
    v = chain.add("Max", {v, scalar(chain, -0.5F)});
    chain.add_output(chain.add("Clip", {v, nullptr, scalar(chain, 0.25F)}), "y");
    expect_single(chain, "Clip");
    Graph disjoint = with_input();
    v = disjoint.add("Clip", {disjoint.inputs()[0], scalar(disjoint, -1), scalar(disjoint, -0.5F)});
    disjoint.add_output(disjoint.add("Relu", {v}), "y");
    expect_single(disjoint, "Clip");
    Graph twice = with_input();
    twice.add_output(twice.add("Relu", {twice.add("Max", {scalar(twice, -1), twice.inputs()[0]})}), "y");
    expect_single(twice, "Relu");
}

TEST(SimplifyClips, LeavesOtherReadersAndComputedLimits) {
    Graph graph = with_input();
    Value* x = graph.inputs()[0];
    Value* limit = graph.add_input("limit", {DType::f32, {}});
    Value* relu = graph.add("Relu", {x});
    graph.add_output(graph.add("Clip", {relu, nullptr, scalar(graph, 1)}), "clipped");
    graph.add_output(relu, "relu");
    graph.add_output(graph.add("Min", {x, limit}), "computed");
    graph.add_output(graph.add("Clip", {graph.add("Clip", {x, limit}), scalar(graph, 1)}), "unknown");
    graph.add_output(graph.add("Max", {x, weights(graph, {7}, 1)}), "vector");
    expect_untouched(graph, simplify_clips);
}

}  // namespace kilter::simplify_clips_test
