// Sub-graphs run through the engine, with what they capture, and give what the reference executor gives.
#include "engine/ref/executor.h"
#include "engine/stage.h"
#include "engine/testing.h"
#include "kilter/passes/passes.h"

namespace kilter::subgraph_test {

using engine::Stage;
using engine::WeightStore;
using engine::testing::expect_close;
using engine::testing::random;

std::shared_ptr<Graph> body() { return std::make_shared<Graph>(); }

// y = relu(x·w) or x·w + x, by a condition that only a run knows; x and the weights are captured.
Graph choice() {
    Graph graph;
    Value* condition = graph.add_input("condition", ValueType(DType::boolean, {}));
    Value* x = graph.add_input("x", ValueType(DType::f32, {Dim("n"), 8}));
    Value* w = graph.add_constant(random(DType::f32, {8, 8}, 1), "w");
    Attributes branches;
    for (const char* name : {"then_branch", "else_branch"}) {
        auto branch = body();
        Value* inner_x = branch->add_capture("x", x);
        Value* product = branch->add("MatMul", {inner_x, branch->add_capture("w", w)});
        const bool first = std::string_view(name) == "then_branch";
        Value* y = first ? branch->add("Relu", {product}) : branch->add("Add", {product, inner_x});
        branch->add_output(y, "y");
        branch->add_output(y, "again");       // one value, two results
        branch->add_output(inner_x, "same");  // a captured one
        branches.set(name, branch);
    }
    std::vector<Value*> outputs{graph.add_value("y"), graph.add_value("again"), graph.add_value("same")};
    graph.add_node("If", {condition}, outputs, std::move(branches), "choice");
    graph.add_output(graph.add("Tanh", {outputs[0]}), "result");
    graph.add_output(outputs[1]);
    graph.add_output(outputs[2]);
    infer_types(graph);
    return graph;
}

TEST(SubGraphs, OfIfRunInTheEngine) {
    Graph graph = choice();
    optimize(graph);
    Stage stage(std::move(graph), {}, std::make_shared<WeightStore>());
    for (const int64_t rows : {3, 5, 3})
        for (const bool condition : {true, false}) {
            const std::vector<Tensor> inputs{Tensor::scalar(condition), random(DType::f32, {rows, 8}, 2)};
            expect_close(stage.run(inputs), ref::run(choice(), inputs));
        }
    std::vector<StepReport> reports;
    stage.profile({Tensor::scalar(true), random(DType::f32, {3, 8}, 2)}, 1, reports);
    EXPECT_TRUE(
        std::ranges::any_of(reports, [](const StepReport& step) { return step.kernel == "sub-graph"; }));
}

// A loop around a choice: the inner bodies capture values of the outer one and of the graph around both.
Graph nested() {
    Graph graph;
    Value* x = graph.add_input("x", ValueType(DType::f32, {4}));
    Value* step = graph.add_constant(Tensor::of<float>({4}, {1, 2, 3, 4}), "step");
    auto loop = body();
    Value* trip = loop->add_input("trip", ValueType(DType::i64, {}));
    loop->add_input("goes_on", ValueType(DType::boolean, {}));
    Value* sum = loop->add_input("sum", ValueType(DType::f32, {4}));
    Value* outer_x = loop->add_capture("x", x);
    Value* outer_step = loop->add_capture("step", step);
    Value* late = loop->add("Greater", {trip, loop->add_constant(Tensor::scalar<int64_t>(1))});
    Attributes branches;
    for (const char* name : {"then_branch", "else_branch"}) {
        auto branch = body();
        Value* inner = branch->add_capture("sum", sum);
        const bool first = std::string_view(name) == "then_branch";
        Value* other = first ? branch->add_capture("x", outer_x) : branch->add_capture("step", outer_step);
        branch->add_output(branch->add(first ? "Mul" : "Add", {inner, other}), "next");
        branches.set(name, branch);
    }
    Value* next = loop->add_value("next");
    loop->add_node("If", {late}, {next}, std::move(branches));
    loop->add_output(loop->add_constant(Tensor::scalar(true), "always"), "condition");
    loop->add_output(next, "carried");
    loop->add_output(loop->add("Neg", {next}), "scanned");
    Attributes attributes;
    attributes.set("body", loop);
    std::vector<Value*> outputs{graph.add_value("last"), graph.add_value("all")};
    graph.add_node("Loop", {graph.add_constant(Tensor::scalar<int64_t>(4)), nullptr, x}, outputs,
                   std::move(attributes), "loop");
    for (Value* output : outputs) graph.add_output(output);
    infer_types(graph);
    return graph;
}

TEST(SubGraphs, MayBeNested) {
    const std::vector<Tensor> inputs{random(DType::f32, {4}, 3)};
    Graph graph = nested();
    optimize(graph);
    Stage stage(std::move(graph), {}, std::make_shared<WeightStore>());
    for (int run = 0; run < 2; ++run) expect_close(stage.run(inputs), ref::run(nested(), inputs));
}

}  // namespace kilter::subgraph_test
