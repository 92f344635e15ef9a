#include "passes/pass_test.h"

namespace kilter::merge_duplicates_test {

using namespace testing;

TEST(MergeDuplicates, KeepsOneOfEqualComputations) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3}});
    const auto branch = [&] { return graph.add("Relu", {graph.add("Add", {x, scalar(graph, 0.5F)})}); };
    Value* a = branch();
    Value* b = branch();
    graph.add_output(graph.add("Sub", {a, graph.add("Abs", {b})}), "y");
    graph.add_output(b, "b");
    expect_keeps_function(graph, merge_duplicates);
    EXPECT_EQ(graph.nodes().size(), 4U);
    EXPECT_EQ(graph.constants().size(), 1U);
}

TEST(MergeDuplicates, LeavesDifferentAttributesInputsAndConstants) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3, 4}});
    graph.add_output(graph.add("Transpose", {x}, ints_attribute("perm", {1, 0, 2})), "a");
    graph.add_output(graph.add("Transpose", {x}, ints_attribute("perm", {2, 1, 0})), "b");
    graph.add_output(graph.add("Add", {x, scalar(graph, 0)}), "c");
    graph.add_output(graph.add("Add", {x, graph.add_constant(Tensor::of<float>({1}, {0}))}), "d");
    graph.add_output(graph.add("Sub", {x, graph.add("Relu", {x})}), "e");
    expect_untouched(graph, merge_duplicates);
}

TEST(MergeDuplicates, ComparesStringsByContent) {
    Graph graph;
    Value* a = graph.add_constant(Tensor::strings({1}, {"a"}));
    Value* b = graph.add_constant(Tensor::strings({1}, {"b"}));
    graph.add_output(graph.add("Identity", {a}), "x");
    graph.add_output(graph.add("Identity", {b}), "y");
    expect_untouched(graph, merge_duplicates);
}

}  // namespace kilter::merge_duplicates_test
