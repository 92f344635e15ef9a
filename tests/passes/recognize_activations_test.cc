#include "passes/pass_test.h"

namespace kilter::recognize_activations_test {

using namespace testing;

Value* ramp(Graph& graph, Value* x) {
    return graph.add("Clip", {graph.add("Add", {scalar(graph, 3), x}), scalar(graph, 0), scalar(graph, 6)});
}

void expect_becomes(Graph& graph, std::string_view op) {
    expect_keeps_function(graph, recognize_activations);
    ASSERT_EQ(graph.nodes().size(), 1U) << print(graph);
    EXPECT_EQ(graph.nodes()[0]->op(), op);
}

Graph with_input() {
    Graph graph;
    graph.add_input("x", {DType::f32, {3, 1, 7}});
    return graph;
}

TEST(RecognizeActivations, KnowsSwish) {
    Graph plain = with_input();
    Value* x = plain.inputs()[0];
    plain.add_output(plain.add("Mul", {plain.add("Sigmoid", {x}), x}), "y");
    expect_becomes(plain, "Swish");
    Graph scaled = with_input();
    x = scaled.inputs()[0];
    scaled.add_output(
        scaled.add("Mul", {x, scaled.add("Sigmoid", {scaled.add("Mul", {x, scalar(scaled, 1.702F)})})}), "y");
    expect_becomes(scaled, "Swish");
}

TEST(RecognizeActivations, KnowsHardSigmoid) {
    for (const bool divide : {false, true}) {
        Graph graph = with_input();
        Value* v = ramp(graph, graph.inputs()[0]);
        graph.add_output(
            divide ? graph.add("Div", {v, scalar(graph, 6)}) : graph.add("Mul", {v, scalar(graph, 1.0F / 6)}),
            "y");
        expect_becomes(graph, "HardSigmoid");
    }
}

TEST(RecognizeActivations, KnowsHardSwish) {
    Graph late = with_input();
    Value* x = late.inputs()[0];
    late.add_output(late.add("Div", {late.add("Mul", {x, ramp(late, x)}), scalar(late, 6)}), "y");
    expect_becomes(late, "HardSwish");
    Graph early = with_input();
    x = early.inputs()[0];
    early.add_output(early.add("Mul", {early.add("Div", {x, scalar(early, 6)}), ramp(early, x)}), "y");
    expect_becomes(early, "HardSwish");
    Graph gate = with_input();
    x = gate.inputs()[0];
    Attributes attributes;
    attributes.set("alpha", 1.0F / 6);
    attributes.set("beta", 0.5F);
    gate.add_output(gate.add("Mul", {x, gate.add("HardSigmoid", {x}, attributes)}), "y");
    expect_becomes(gate, "HardSwish");
}

TEST(RecognizeActivations, KnowsMish) {
    Graph graph = with_input();
    Value* x = graph.inputs()[0];
    graph.add_output(graph.add("Mul", {x, graph.add("Tanh", {graph.add("Softplus", {x})})}), "y");
    expect_becomes(graph, "Mish");
}

TEST(RecognizeActivations, LeavesGatesOfOtherValuesAndOtherReaders) {
    Graph graph = with_input();
    Value* x = graph.inputs()[0];
    Value* z = graph.add_input("z", {DType::f32, {3, 1, 7}});
    graph.add_output(graph.add("Mul", {z, graph.add("Sigmoid", {x})}), "gate");
    Value* gate = graph.add("Sigmoid", {z});
    graph.add_output(graph.add("Mul", {z, gate}), "swish");
    graph.add_output(gate, "sigmoid");
    graph.add_output(graph.add("Div", {ramp(graph, x), scalar(graph, 5)}), "other slope");
    expect_untouched(graph, recognize_activations);
}

}  // namespace kilter::recognize_activations_test
