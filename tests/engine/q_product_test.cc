// Products with packed constant matrices: every width of panel and height of tile, every step after the sums.
#include <fmt/format.h>

#include "engine/native/vnni.h"
#include "engine/ref/executor.h"
#include "engine/testing.h"
#include "graph/onnx_dtype.h"

namespace kilter::engine::testing::q_product_test {

struct Case {
    int64_t rows, depth, columns;
    bool trans_b = false;
    bool per_column = true, bias = true;
    std::vector<std::string> post_ops = {};
    std::vector<float> alphas = {}, betas = {};
    DType operand = DType::f32;
    DType result = DType::f32;
    int64_t zero_point = 0;
};

OpTest product(const Case& c) {
    OpTest test("QMatMul", std::string(kKilterDomain));
    const Shape weights = c.trans_b ? Shape{c.columns, c.depth} : Shape{c.depth, c.columns};
    test.input(random(DType::u8, {c.rows, c.depth}, 1, 0, 256))
        .constant(random(DType::i8, weights, 2, -127, 128));
    if (c.bias)
        test.constant(random(DType::f32, {c.columns}, 3));
    else
        test.absent();
    test.attribute("trans_b", int64_t{c.trans_b})
        .attribute("a_scale", 0.02F)
        .attribute("a_zero_point", int64_t{117});
    const Tensor scales = random(DType::f32, {c.per_column ? c.columns : 1}, 4, 0.0005, 0.002);
    test.attribute("b_scale", std::vector<float>(scales.as<float>().begin(), scales.as<float>().end()));
    test.attribute("post_ops", c.post_ops)
        .attribute("post_alphas", c.alphas)
        .attribute("post_betas", c.betas);
    std::vector<float> operand_scales;
    std::vector<int64_t> operand_zero_points;
    for (const std::string& op : c.post_ops) {
        if (op != "add") continue;
        const bool floats = c.operand == DType::f32;
        test.input(random(c.operand, {c.rows, c.columns}, 5, floats ? -4 : 0, floats ? 4 : 128));
        operand_scales.push_back(floats ? 0.0F : 0.03F);
        operand_zero_points.push_back(floats ? 0 : 31);
    }
    test.attribute("operand_scales", operand_scales).attribute("operand_zero_points", operand_zero_points);
    if (c.result != DType::f32) {
        test.attribute("y_dtype", onnx_code(c.result));
        test.attribute("y_scale", 0.04F).attribute("y_zero_point", c.zero_point);
    }
    return test;
}

void expect_panels(OpTest& test) {
    if (!has_vnni() || has_amx()) return;
    size_t found = 0;
    for (const StepReport& step : test.steps()) found += step.kernel == "panels:avx512_vnni" ? 1 : 0;
    EXPECT_EQ(found, 1);
}

TEST(QProduct, GivesTheBitsOfTheScalarKernelForEveryShape) {
    for (const int64_t rows : {1, 3, 8, 9, 15, 23, 64})
        for (const int64_t depth : {4, 52, 768})
            for (const int64_t columns : {1, 15, 16, 33, 48, 64, 95, 145}) {
                SCOPED_TRACE(fmt::format("{}x{}x{}", rows, depth, columns));
                OpTest test = product({.rows = rows, .depth = depth, .columns = columns});
                test.tolerance(0).check();
                expect_panels(test);
            }
}

TEST(QProduct, GivesTheBitsOfTheScalarKernelForEveryResult) {
    for (const int64_t columns : {48, 53})
        for (const bool trans_b : {false, true})
            for (const bool simple : {false, true})
                for (const auto& [result, zero_point] :
                     {std::pair{DType::f32, 0}, std::pair{DType::u8, 0}, std::pair{DType::u8, 131},
                      std::pair{DType::i8, -5}}) {
                    OpTest test = product({.rows = 19,
                                           .depth = 64,
                                           .columns = columns,
                                           .trans_b = trans_b,
                                           .per_column = !simple,
                                           .bias = !simple,
                                           .result = result,
                                           .zero_point = zero_point});
                    test.tolerance(0).check();
                    expect_panels(test);
                }
}

TEST(QProduct, AddsAndClampsAsTheScalarKernelDoes) {
    const std::vector<Case> tails{
        {.post_ops = {"relu"}, .alphas = {0}, .betas = {0}},
        {.post_ops = {"clip"}, .alphas = {-0.5F}, .betas = {1.25F}},
        {.post_ops = {"linear"}, .alphas = {0.7F}, .betas = {0.1F}},
        {.post_ops = {"add"}, .alphas = {0}, .betas = {0}},
        {.post_ops = {"add", "relu"}, .alphas = {0, 0}, .betas = {0, 0}},
        {.post_ops = {"relu", "add", "clip"}, .alphas = {0, 0, -1}, .betas = {0, 0, 2}},
    };
    for (const Case& tail : tails)
        for (const DType operand : {DType::f32, DType::u8, DType::i8})
            for (const DType result : {DType::f32, DType::u8, DType::i8})
                for (const int64_t columns : {48, 85}) {
                    SCOPED_TRACE(
                        fmt::format("{} with {} to {}", tail.post_ops.front(), name(operand), name(result)));
                    Case c = tail;
                    c.rows = 21;
                    c.depth = 36;
                    c.columns = columns;
                    c.operand = operand;
                    c.result = result;
                    OpTest test = product(c);
                    test.tolerance(0).check();
                    expect_panels(test);
                }
}

TEST(QProduct, ComputesGelu) {
    // Sums from about -25 to 25: on both sides far beyond where the function is 0 or the identity.
    OpTest test = product(
        {.rows = 64, .depth = 4096, .columns = 96, .post_ops = {"gelu_erf"}, .alphas = {0}, .betas = {0}});
    test.tolerance(1e-7).check();
    expect_panels(test);
}

TEST(QProduct, LeavesTheResidualAloneWhenItIsReadAgain) {
    Graph graph;
    const Tensor a = random(DType::u8, {16, 32}, 1, 0, 256);
    const Tensor x = random(DType::f32, {16, 48}, 2);
    Value* residual = graph.add("Neg", {graph.add_input({}, ValueType::of(x))});
    Attributes attributes;
    attributes.set("post_ops", std::vector<std::string>{"add"});
    attributes.set("post_alphas", std::vector<float>{0});
    attributes.set("post_betas", std::vector<float>{0});
    Value* bytes = graph.add_input({}, ValueType::of(a));
    Value* weights = graph.add_constant(random(DType::i8, {32, 48}, 3, -127, 128));
    const auto add = [&] {
        Value* y = graph.add_value();
        graph.add_node("QMatMul", {bytes, weights, nullptr, residual}, {y}, attributes, "",
                       std::string(kKilterDomain));
        return y;
    };
    Value* first = add();
    Value* second = add();  // in place of the residual, after the first has read it
    graph.add_output(first);
    graph.add_output(second);
    Stage stage(graph.clone(), {}, std::make_shared<WeightStore>());
    expect_close(stage.run({x, a}), ref::run(graph, {x, a}), 0);
}

}  // namespace kilter::engine::testing::q_product_test
