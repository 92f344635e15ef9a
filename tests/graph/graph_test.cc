#include <gtest/gtest.h>

#include "engine/ref/executor.h"
#include "kilter/base/error.h"
#include "kilter/graph/graph.h"

namespace kilter {
namespace {

TEST(Graph, RunsASmallGraph) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 2}});
    graph.add_output(graph.add("Relu", {x}), "y");
    infer_types(graph);
    EXPECT_EQ(to_string(graph.outputs()[0].value->type), "f32[batch, 2]");
    const Tensor input = Tensor::of<float>({1, 2}, {-1, 3});
    const Tensor result = ref::run(graph, {input})[0];
    EXPECT_EQ(result.as<float>()[0], 0.0F);
    EXPECT_EQ(result.as<float>()[1], 3.0F);
}

TEST(Graph, ReportsCycles) {
    Graph graph;
    Value* a = graph.add_value("a");
    Value* b = graph.add_value("b");
    graph.add_node("Relu", {a}, {b}, {}, "first");
    graph.add_node("Relu", {b}, {a}, {}, "second");
    try {
        graph.sort();
        FAIL() << "a cycle was not reported";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("'first'"), std::string::npos) << error.what();
    }
}

TEST(Graph, KeepsTheNameOfAnOutputWhenItsValueIsReplaced) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2}});
    Value* first = graph.add("Relu", {x});
    Value* second = graph.add("Relu", {first});
    graph.add_output(second, "y");
    graph.replace_uses(second, first);
    EXPECT_EQ(graph.remove_dead(), 1U);
    EXPECT_EQ(graph.outputs()[0].name, "y");
    EXPECT_EQ(graph.outputs()[0].value, first);
}

}  // namespace
}  // namespace kilter
