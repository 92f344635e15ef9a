#include <gtest/gtest.h>

#include "engine/ref/executor.h"
#include "kilter/base/error.h"
#include "kilter/graph/graph.h"

namespace kilter::graph_test {

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

TEST(Graph, RefusesTakenNamesAndFindsFreshOnes) {
    Graph graph;
    graph.add_input("x", {DType::f32, {2}});
    EXPECT_THROW(graph.add_value("x"), Error);
    EXPECT_NE(graph.fresh_name("x"), "x");
}

TEST(Graph, KeepsUsersAndProducersConsistent) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2}});
    Value* y = graph.add("Add", {x, x});
    EXPECT_EQ(x->users().size(), 2U);
    Node* add = y->producer();
    Value* z = graph.add_input("z", {DType::f32, {2}});
    graph.set_input(*add, 1, z);
    EXPECT_EQ(x->users().size(), 1U);
    EXPECT_TRUE(graph.has_single_use(z));
    graph.add_output(y);
    EXPECT_FALSE(graph.has_single_use(y));
    EXPECT_THROW(graph.remove_value(x), Error);
    EXPECT_NO_THROW(verify(graph));
}

TEST(Graph, SortsStably) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2}});
    Value* middle = graph.add_value("middle");
    Value* last = graph.add_value("last");
    graph.add_node("Relu", {middle}, {last}, {}, "second");
    graph.add_node("Relu", {x}, {middle}, {}, "first");
    graph.add("Relu", {x}, {}, "apart");
    graph.sort();
    std::vector<std::string> order;
    for (const auto& node : graph.nodes()) order.push_back(node->name);
    EXPECT_EQ(order, (std::vector<std::string>{"first", "second", "apart"}));
}

TEST(Graph, RemovesDeadNodesAndConstants) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2}});
    graph.add_output(graph.add("Relu", {x}), "y");
    graph.add("Relu", {graph.add("Add", {x, graph.add_constant(Tensor::scalar<float>(1), "one")})});
    EXPECT_EQ(graph.remove_dead(), 2U);
    EXPECT_EQ(graph.find("one"), nullptr);
    EXPECT_EQ(x->users().size(), 1U);
    EXPECT_NO_THROW(verify(graph));
}

TEST(Graph, TurnsAComputedValueIntoAConstant) {
    Graph graph;
    Value* sum = graph.add(
        "Add", {graph.add_constant(Tensor::scalar<float>(1)), graph.add_constant(Tensor::scalar<float>(2))});
    graph.add_output(graph.add("Relu", {sum}), "y");
    graph.make_constant(sum, Tensor::scalar<float>(3));
    EXPECT_EQ(graph.remove_dead(), 1U);
    EXPECT_EQ(graph.constant(sum)->as<float>()[0], 3.0F);
    EXPECT_NO_THROW(verify(graph));
}

TEST(Graph, ClonesDeeplyAndSharesConstants) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2}});
    Value* limit = graph.add_constant(Tensor::of<float>({2}, {1, 2}), "limit");
    auto body = std::make_shared<Graph>();
    body->add_output(body->add("Neg", {body->add_capture("captured", x)}), "result");
    Attributes attributes;
    attributes.set("then_branch", body);
    attributes.set("else_branch", std::make_shared<Graph>(body->clone()));
    Value* y = graph.add_value("y");
    graph.add_node("If", {graph.add_constant(Tensor::scalar<bool>(true))}, {y}, attributes, "if");
    graph.add_output(graph.add("Add", {y, limit}), "sum");
    const Graph twin = graph.clone();
    EXPECT_NO_THROW(verify(twin));
    EXPECT_EQ(print(twin), print(graph));
    EXPECT_TRUE(twin.constant(twin.find("limit"))->same_storage(*graph.constant(limit)));
    const Graph* inner = twin.nodes()[0]->subgraphs()[0];
    EXPECT_EQ(inner->captures()[0]->outer(), twin.find("x"));
    const Tensor input = Tensor::of<float>({2}, {1, -1});
    EXPECT_TRUE(identical(ref::run(twin, {input})[0], ref::run(graph, {input})[0]));
}

TEST(Graph, CapturesCountAsUses) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2}});
    Value* hidden = graph.add("Relu", {x});
    auto body = std::make_shared<Graph>();
    body->add_output(body->add("Neg", {body->add_capture("captured", hidden)}), "result");
    Attributes attributes;
    attributes.set("then_branch", body);
    attributes.set("else_branch", body);
    Value* y = graph.add_value("y");
    Node* choice = graph.add_node("If", {graph.add_constant(Tensor::scalar<bool>(true))}, {y}, attributes);
    graph.add_output(y);
    EXPECT_EQ(hidden->users().front(), choice);
    EXPECT_EQ(graph.remove_dead(), 0U);
    graph.replace_uses(hidden, x);
    EXPECT_EQ(body->captures()[0]->outer(), x);
    EXPECT_EQ(graph.remove_dead(), 1U);
}

}  // namespace kilter::graph_test
