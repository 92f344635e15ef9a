#include <gtest/gtest.h>

#include "kilter/base/error.h"
#include "kilter/graph/graph.h"

namespace kilter::verify_test {

Attributes with(std::string_view name, AttributeValue value) {
    Attributes attributes;
    attributes.set(name, std::move(value));
    return attributes;
}

void expect_error(const Graph& graph, const std::string& part) {
    try {
        verify(graph);
        ADD_FAILURE() << "expected an error with '" << part << "'";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

TEST(Verify, AcceptsASoundGraph) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 4}});
    Value* y = graph.add("Concat", {x, x, graph.add_constant(Tensor::filled(DType::f32, {1, 4}, 0))},
                         with("axis", int64_t{0}));
    graph.add_output(y, "y");
    EXPECT_NO_THROW(verify(graph));
}

TEST(Verify, NamesAValueThatNothingComputes) {
    Graph graph;
    Value* loose = graph.add_value("loose");
    graph.add_output(graph.add("Relu", {loose}, {}, "act"), "y");
    expect_error(graph, "value 'loose' is read by operator 'act' (Relu) but nothing computes it");
}

TEST(Verify, NamesACycle) {
    Graph graph;
    Value* a = graph.add_value("a");
    Value* b = graph.add_value("b");
    graph.add_node("Relu", {a}, {b}, {}, "first");
    graph.add_node("Relu", {b}, {a}, {}, "second");
    expect_error(graph, "cycle through operator 'first' (Relu)");
}

TEST(Verify, ChecksArityAgainstTheSchema) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {4}});
    graph.add_output(graph.add("Add", {x}, {}, "sum"), "y");
    expect_error(graph, "operator 'sum' (Add): takes 2 inputs, found 1");
}

TEST(Verify, ChecksRequiredInputs) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {4}});
    graph.add_output(graph.add("Add", {x, nullptr}, {}, "sum"), "y");
    expect_error(graph, "operator 'sum' (Add): input 1 is missing");
}

TEST(Verify, ChecksAttributesAgainstTheSchema) {
    Graph missing;
    Value* x = missing.add_input("x", {DType::f32, {4}});
    missing.add_output(missing.add("Concat", {x}, {}, "join"), "y");
    expect_error(missing, "operator 'join' (Concat): attribute 'axis' is missing");

    Graph wrong;
    x = wrong.add_input("x", {DType::f32, {4}});
    wrong.add_output(wrong.add("Concat", {x}, with("axis", 1.0F), "join"), "y");
    expect_error(wrong, "operator 'join' (Concat): attribute 'axis' must be an integer");
}

TEST(Verify, LeavesUnknownOperatorsAlone) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {4}});
    graph.add_output(graph.add("Anything", {x, nullptr}, {}, "", "my.domain"), "y");
    EXPECT_NO_THROW(verify(graph));
}

TEST(Verify, ComparesDeclaredAndHeldTypes) {
    Graph graph;
    Value* constant = graph.add_constant(Tensor::of<float>({2}, {1, 2}), "weights");
    constant->type = {DType::f32, {3}};
    expect_error(graph, "constant 'weights' is declared f32[3] but holds f32[2]");
}

TEST(Verify, RejectsOutputsOfOneName) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {4}});
    graph.add_output(x, "y");
    graph.add_output(x, "y");
    expect_error(graph, "two outputs of the graph are named 'y'");
}

TEST(Verify, LooksIntoSubgraphs) {
    Graph graph;
    Value* condition = graph.add_input("condition", {DType::boolean, {}});
    const auto branch = [] {
        auto body = std::make_shared<Graph>();
        body->add_output(body->add("Relu", {body->add_value("loose")}), "y");
        return body;
    };
    Attributes attributes = with("then_branch", branch());
    attributes.set("else_branch", branch());
    Value* y = graph.add_value("y");
    graph.add_node("If", {condition}, {y}, attributes, "choice");
    graph.add_output(y);
    expect_error(graph, "operator 'choice' (If): value 'loose' is read by");
}

TEST(Print, ShowsOneLinePerOperator) {
    Graph graph;
    graph.name = "tiny";
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 4}});
    Value* sum = graph.add("Add", {x, graph.add_constant(Tensor::scalar<float>(2), "two")}, {}, "plus");
    Value* y = graph.add("Concat", {sum, graph.add_constant(Tensor::filled(DType::f32, {1, 4}, 0), "zeros")},
                         with("axis", int64_t{0}), "join");
    graph.add_output(y, "y");
    infer_types(graph);
    EXPECT_EQ(print(graph),
              "graph tiny(x: f32[batch, 4]) -> (y = join: f32[?, 4])\n"
              "  plus: f32[batch, 4] = Add(x, 2)  # plus\n"
              "  join: f32[?, 4] = Concat(plus, zeros: f32[1, 4]) {axis=0}  # join\n");
}

}  // namespace kilter::verify_test
