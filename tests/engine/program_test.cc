#include "kilter/engine/program.h"

#include <thread>

#include "engine/ref/executor.h"
#include "engine/testing.h"
#include "kilter/base/error.h"

namespace kilter::program_test {

using engine::testing::expect_close;
using engine::testing::random;

Model model_of(Graph graph) {
    Model model;
    model.graph = std::move(graph);
    model.opsets = {{"", kCanonicalOpset}};
    return model;
}

// conv -> relu -> conv + residual -> relu -> mean over the plane -> product
Graph residual_network() {
    Graph graph;
    Attributes padding;
    padding.set("pads", std::vector<int64_t>{1, 1, 1, 1});
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 16, Dim("height"), Dim("width")}});
    Value* a = graph.add(
        "Relu", {graph.add("Conv", {x, graph.add_constant(random(DType::f32, {32, 16, 3, 3}, 1))}, padding)});
    Value* b =
        graph.add("Conv", {a, graph.add_constant(random(DType::f32, {32, 32, 3, 3}, 2, -0.1, 0.1))}, padding);
    Value* y = graph.add("Relu", {graph.add("Add", {b, a})});
    Attributes flat;
    flat.set("axis", int64_t{1});
    Value* features = graph.add("Flatten", {graph.add("GlobalAveragePool", {y})}, flat);
    graph.add_output(graph.add("MatMul", {features, graph.add_constant(random(DType::f32, {32, 5}, 3))}),
                     "scores");
    graph.add_output(a, "early");
    infer_types(graph);
    return graph;
}

std::string error_of(const Program& program, const std::vector<Tensor>& inputs) {
    try {
        program.run(inputs);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

TEST(Program, ReplansForEveryShape) {
    const Graph graph = residual_network();
    const Program program(model_of(graph.clone()));
    for (const Shape& shape :
         {Shape{1, 16, 9, 11}, Shape{3, 16, 8, 8}, Shape{1, 16, 9, 11}, Shape{2, 16, 33, 5}}) {
        const Tensor x = random(DType::f32, shape, 4);
        expect_close(program.run({x}), ref::run(graph, {x}));
    }
}

TEST(Program, RunsFromManyThreadsAtOnce) {
    const Graph graph = residual_network();
    EngineOptions options;
    options.threads = 1;
    const Program program(model_of(graph.clone()), options);
    std::vector<std::thread> threads;
    std::vector<std::vector<Tensor>> results(4);
    for (unsigned i = 0; i < results.size(); ++i)
        threads.emplace_back([&, i] {
            for (int repeat = 0; repeat < 5; ++repeat)
                results[i] = program.run({random(DType::f32, {1 + i % 2, 16, 12, 12}, i)});
        });
    for (std::thread& thread : threads) thread.join();
    for (unsigned i = 0; i < results.size(); ++i)
        expect_close(results[i], ref::run(graph, {random(DType::f32, {1 + i % 2, 16, 12, 12}, i)}));
}

TEST(Program, ResultsOwnTheirMemory) {
    const Program program(model_of(residual_network()));
    const std::vector<Tensor> first = program.run({random(DType::f32, {1, 16, 8, 8}, 1)});
    const Tensor kept = first[0].clone();
    program.run({random(DType::f32, {1, 16, 8, 8}, 2)});
    EXPECT_TRUE(identical(first[0], kept));
}

TEST(Program, GivesTheSameBitsEveryTime) {
    const Program program(model_of(residual_network()));
    const Tensor x = random(DType::f32, {2, 16, 20, 20}, 1);
    const std::vector<Tensor> first = program.run({x});
    for (int i = 0; i < 3; ++i)
        for (size_t k = 0; k < first.size(); ++k) EXPECT_TRUE(identical(program.run({x})[k], first[k]));
}

TEST(Program, ReturnsInputsAndConstantsAsOutputs) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2}});
    graph.add_output(x, "same");
    graph.add_output(graph.add_constant(Tensor::of<float>({1}, {7}), "seven"), "constant");
    graph.add_output(graph.add("Relu", {x}), "first");
    graph.add_output(graph.outputs()[2].value, "again");
    const Program program(model_of(std::move(graph)));
    const Tensor given = Tensor::of<float>({2}, {-1, 2});
    const std::vector<Tensor> results = program.run({given});
    EXPECT_EQ(results[0].as<float>()[0], -1.0F);
    EXPECT_FALSE(results[0].same_storage(given));
    EXPECT_EQ(results[1].as<float>()[0], 7.0F);
    EXPECT_EQ(results[2].as<float>()[1], 2.0F);
    EXPECT_EQ(results[3].as<float>()[0], 0.0F);
}

// The number of positive elements is known only at run time; what follows is planned then.
TEST(Program, PlansTheRestWhenShapesAppearAtRunTime) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("n")}});
    Value* positive = graph.add("Greater", {x, graph.add_constant(Tensor::scalar(0.0F))});
    Value* where = graph.add("NonZero", {positive});
    Attributes order;
    order.set("perm", std::vector<int64_t>{1, 0});
    Value* chosen = graph.add("GatherND", {x, graph.add("Transpose", {where}, order)});
    graph.add_output(graph.add("Exp", {chosen}), "y");
    graph.add_output(graph.add("Neg", {x}), "z");
    infer_types(graph);
    const Program program(model_of(graph.clone()));
    for (const unsigned seed : {1U, 2U, 3U}) {
        const Tensor given = random(DType::f32, {9}, seed);
        expect_close(program.run({given}), ref::run(graph, {given}));
    }
    const Tensor none = Tensor::of<float>({2}, {-1, -2});
    EXPECT_EQ(program.run({none})[0].shape(), (Shape{0}));
}

TEST(Program, SaysWhatIsWrongWithAnInput) {
    const Program program(model_of(residual_network()));
    EXPECT_NE(error_of(program, {}).find("takes 1 inputs, 0 were given"), std::string::npos);
    EXPECT_NE(error_of(program, {Tensor(DType::i64, {1, 16, 8, 8})}).find("'x' takes f32 but i64"),
              std::string::npos);
    EXPECT_NE(error_of(program, {Tensor(DType::f32, {1, 3, 8, 8})}).find("[batch, 16, height, width]"),
              std::string::npos);
    EXPECT_NE(error_of(program, {Tensor(DType::f32, {16, 8, 8})}).find("[16, 8, 8]"), std::string::npos);
}

TEST(Program, RunsThroughTheReferenceWhenAsked) {
    EngineOptions options;
    options.reference = true;
    const Program program(model_of(residual_network()), options);
    for (const StepReport& step : program.profile({random(DType::f32, {1, 16, 8, 8}, 1)}, 1))
        EXPECT_TRUE(step.kernel == "ref" || step.op == "copy") << step.kernel;
}

// A buffer that two values share, or that is read again later, must not be overwritten.
TEST(Program, OverwritesOnlyWhatNobodyReadsAnyMore) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {4, 6}});
    Value* a = graph.add("Relu", {x});
    Attributes order;
    order.set("perm", std::vector<int64_t>{1, 0});
    Value* view = graph.add("Transpose", {a}, order);
    Value* b = graph.add("Exp", {a});           // must not destroy what `view` shows
    Value* c = graph.add("MatMul", {b, view});  // [4, 4]
    graph.add_output(graph.add("Add", {c, graph.add("MatMul", {a, view})}), "y");
    infer_types(graph);
    const Program program(model_of(graph.clone()));
    const Tensor given = random(DType::f32, {4, 6}, 5);
    expect_close(program.run({given}), ref::run(graph, {given}));
}

}  // namespace kilter::program_test
