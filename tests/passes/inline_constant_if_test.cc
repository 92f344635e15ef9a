#include "passes/pass_test.h"

namespace kilter::inline_constant_if_test {

using namespace testing;

// then: relu(x) + 1 with a nested If on `flag`; else: x itself
Value* branch_on(Graph& graph, Value* condition, Value* x, Value* flag) {
    auto then_branch = std::make_shared<Graph>();
    Value* inside = then_branch->add_capture("x_then", x);
    Value* relu = then_branch->add("Relu", {inside}, {}, "relu");
    if (flag != nullptr) {
        auto negated = std::make_shared<Graph>();
        negated->add_output(negated->add("Neg", {negated->add_capture("r", relu)}));
        auto same = std::make_shared<Graph>();
        same->add_output(same->add("Identity", {same->add_capture("r2", relu)}));
        Attributes nested;
        nested.set("then_branch", negated);
        nested.set("else_branch", same);
        relu = then_branch->add("If", {then_branch->add_capture("flag_in", flag)}, nested);
    }
    then_branch->add_output(then_branch->add("Add", {relu, scalar(*then_branch, 1)}));
    auto else_branch = std::make_shared<Graph>();
    else_branch->add_output(else_branch->add_capture("x_else", x));
    Attributes attributes;
    attributes.set("then_branch", then_branch);
    attributes.set("else_branch", else_branch);
    return graph.add("If", {condition}, attributes);
}

TEST(InlineConstantIf, KeepsTheChosenBranch) {
    for (const bool chosen : {false, true}) {
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, {2, 3}});
        Value* condition = graph.add_constant(Tensor::scalar<bool>(chosen));
        graph.add_output(graph.add("Abs", {branch_on(graph, condition,
                                                     graph.add("Sqrt", {graph.add("Abs", {x})}), nullptr)}),
                         "y");
        expect_keeps_function(graph, inline_constant_if);
        EXPECT_EQ(graph.count("If"), 0U);
    }
}

TEST(InlineConstantIf, MovesNestedCaptures) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3}});
    Value* flag = graph.add_input("flag", {DType::boolean, {}});
    Value* condition = graph.add_constant(Tensor::scalar<bool>(true));
    graph.add_output(branch_on(graph, condition, x, flag), "y");
    expect_keeps_function(graph, inline_constant_if);
    EXPECT_EQ(graph.count("If"), 1U);
    EXPECT_EQ(graph.count("Relu"), 1U);
    graph.sort();
    const Graph copy = graph.clone();
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_near(ref::run(copy, inputs), ref::run(graph, inputs), 0);
}

TEST(InlineConstantIf, LeavesAComputedCondition) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3}});
    Value* flag = graph.add_input("flag", {DType::boolean, {}});
    graph.add_output(branch_on(graph, flag, x, nullptr), "y");
    expect_untouched(graph, inline_constant_if);
}

TEST(Passes, WorkInsideSubGraphs) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3}});
    Value* flag = graph.add_input("flag", {DType::boolean, {}});
    auto body = std::make_shared<Graph>();
    Value* inside = body->add_capture("inside", x);
    body->add_output(body->add("Relu", {body->add("Identity", {inside})}));
    auto other = std::make_shared<Graph>();
    other->add_output(other->add("Identity", {other->add_capture("again", x)}));
    Attributes attributes;
    attributes.set("then_branch", body);
    attributes.set("else_branch", other);
    graph.add_output(graph.add("If", {flag}, attributes), "y");
    expect_keeps_function(graph, remove_identities);
    EXPECT_EQ(body->count("Identity") + other->count("Identity"), 0U);
}

}  // namespace kilter::inline_constant_if_test
