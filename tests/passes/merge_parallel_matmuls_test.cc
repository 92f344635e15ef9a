#include "passes/pass_test.h"

namespace kilter {
namespace {

using namespace testing;

Value* projection(Graph& graph, Value* x, int64_t columns, bool transposed, bool bias, unsigned seed) {
    std::vector<Value*> inputs{x, weights(graph, transposed ? Shape{columns, 6} : Shape{6, columns}, seed)};
    if (bias) inputs.push_back(weights(graph, {columns}, seed + 1));
    Value* v = graph.add("MatMul", inputs, attribute<int64_t>("trans_b", transposed ? 1 : 0),
                         "p" + std::to_string(seed), kKilterDomain);
    return graph.add("Reshape", {v, ints(graph, {0, 0, 2, -1})});
}

TEST(MergeParallelMatMuls, KeepsTheFunction) {
    for (const bool transposed : {false, true}) {
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, {2, 3, 6}});
        graph.add_output(projection(graph, x, 4, transposed, true, 1), "q");
        graph.add_output(projection(graph, x, 4, transposed, false, 3), "k");
        graph.add_output(projection(graph, x, 10, transposed, true, 5), "v");
        expect_keeps_function(graph, merge_parallel_matmuls);
        EXPECT_EQ(graph.count("MatMul", kKilterDomain), 1U);
        const Node* merged = find_node(graph, "MatMul", kKilterDomain);
        EXPECT_EQ(merged->name, "p1");
        EXPECT_EQ(merged->origins, (std::vector<std::string>{"p3", "p5"}));
    }
}

TEST(MergeParallelMatMuls, LeavesOtherReadersAndOtherInputs) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3, 6}});
    Value* z = graph.add_input("z", {DType::f32, {2, 3, 6}});
    graph.add_output(projection(graph, x, 4, false, true, 1), "a");
    graph.add_output(projection(graph, z, 4, false, true, 3), "b");
    graph.add_output(graph.add("MatMul", {x, weights(graph, {6, 4}, 5)}, {}, {}, kKilterDomain), "c");
    expect_untouched(graph, merge_parallel_matmuls);
}

}  // namespace
}  // namespace kilter
