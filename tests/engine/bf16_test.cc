#include "engine/dnnl/dnnl.h"
#include "engine/ref/executor.h"
#include "engine/testing.h"
#include "graph/onnx_dtype.h"
#include "kilter/passes/passes.h"
#include "passes/list.h"

namespace kilter::engine::bf16_test {

using testing::random;

Value* cast(Graph& graph, Value* value, DType to) {
    Attributes attributes;
    attributes.set("to", onnx_code(to));
    return graph.add("Cast", {value}, std::move(attributes));
}

// Two convolutions and a product in bfloat16, each between casts, as `quantize` writes them.
Graph network() {
    Graph graph;
    Value* y = graph.add_input("x", ValueType(DType::f32, {2, 16, 13, 11}));
    for (const int64_t seed : {1, 2}) {
        Attributes same;
        same.set("pads", std::vector<int64_t>{1, 1, 1, 1});
        Value* w = graph.add_constant(random(DType::f32, {16, 16, 3, 3}, seed).converted(DType::bf16));
        Value* b = graph.add_constant(random(DType::f32, {16}, seed + 10).converted(DType::bf16));
        y = cast(graph, graph.add("Conv", {cast(graph, y, DType::bf16), w, b}, same), DType::f32);
        y = graph.add("Relu", {y});
    }
    Value* w = graph.add_constant(random(DType::f32, {11, 24}, 3).converted(DType::bf16));
    y = cast(graph, graph.add("MatMul", {cast(graph, y, DType::bf16), w}), DType::f32);
    graph.add_output(y, "y");
    infer_types(graph);
    return graph;
}

double worst(const Tensor& a, const Tensor& b) {
    double difference = 0;
    double size = 0;
    for (size_t i = 0; i < a.as<float>().size(); ++i) {
        difference = std::max(difference, std::abs(double{a.as<float>()[i]} - b.as<float>()[i]));
        size = std::max(size, std::abs(double{b.as<float>()[i]}));
    }
    return difference / size;
}

// Eight bits of mantissa: one rounding is worth 1/256.
constexpr double kSteps = 3.0 / 256;

TEST(Bf16, ConvolutionsAndProductsRunInBfloat16) {
    if (!has_bf16()) GTEST_SKIP() << "this CPU does not multiply bfloat16";
    Graph graph = network();
    const Tensor x = random(DType::f32, {2, 16, 13, 11}, 4);
    const Tensor wanted = ref::run(graph, {x})[0];
    optimize(graph);
    EXPECT_LE(graph.count("Cast"), 6U);
    Stage stage(std::move(graph), {}, std::make_shared<WeightStore>());
    EXPECT_LT(worst(stage.run({x})[0], wanted), kSteps);
    std::vector<StepReport> reports;
    stage.profile({x}, 1, reports);
    int products = 0;
    for (const StepReport& step : reports) {
        EXPECT_FALSE(is_reference(step.kernel)) << step.op << " " << step.kernel;
        if (step.kernel.find("bf16") != std::string::npos) ++products;
    }
    EXPECT_EQ(products, 3);
}

// An attention mask: a product of batches, and an operand that is neither a row nor as large as the result.
TEST(Bf16, PostOpsStayInBfloat16) {
    Graph graph;
    Value* a = graph.add_input("a", ValueType(DType::f32, {2, 3, 4, 8}));
    Value* b = graph.add_input("b", ValueType(DType::f32, {2, 3, 8, 6}));
    Value* mask = graph.add_constant(random(DType::f32, {4, 6}, 3).converted(DType::bf16));
    Value* scores = graph.add("MatMul", {cast(graph, a, DType::bf16), cast(graph, b, DType::bf16)});
    Value* masked = graph.add("Softmax", {graph.add("Add", {scores, mask})});
    graph.add_output(cast(graph, masked, DType::f32), "y");
    infer_types(graph);
    const std::vector<Tensor> inputs{random(DType::f32, {2, 3, 4, 8}, 1),
                                     random(DType::f32, {2, 3, 8, 6}, 2)};
    const Tensor wanted = ref::run(graph, inputs)[0];
    optimize(graph);
    if (!has_bf16()) widen_bf16(graph);
    Stage stage(std::move(graph), {}, std::make_shared<WeightStore>());
    EXPECT_LT(worst(stage.run(inputs)[0], wanted), kSteps);
}

TEST(Bf16, OtherCpusComputeTheSameInFloat32) {
    Graph graph = network();
    const Tensor x = random(DType::f32, {2, 16, 13, 11}, 4);
    const Tensor wanted = ref::run(graph, {x})[0];
    optimize(graph);
    ASSERT_TRUE(widen_bf16(graph));
    EXPECT_FALSE(widen_bf16(graph));
    Stage stage(std::move(graph), {}, std::make_shared<WeightStore>());
    EXPECT_LT(worst(stage.run({x})[0], wanted), kSteps);
    std::vector<StepReport> reports;
    stage.profile({x}, 1, reports);
    for (const StepReport& step : reports) EXPECT_EQ(step.kernel.find("bf16"), std::string::npos);
}

TEST(Bf16, ACastThereAndBackDisappears) {
    Graph graph;
    Value* x = graph.add_input("x", ValueType(DType::bf16, {3, 5}));
    graph.add_output(graph.add("Neg", {cast(graph, cast(graph, x, DType::f32), DType::bf16)}), "kept");
    Value* y = graph.add_input("y", ValueType(DType::f32, {3, 5}));
    graph.add_output(graph.add("Neg", {cast(graph, cast(graph, y, DType::bf16), DType::f32)}), "rounded");
    infer_types(graph);
    remove_identities(graph);
    EXPECT_EQ(graph.count("Cast"), 2U);  // the second pair rounds
}

}  // namespace kilter::engine::bf16_test
