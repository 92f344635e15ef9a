#include "kilter/quantization/plan.h"

#include <gtest/gtest.h>

#include "kilter/base/error.h"
#include "passes/pass_test.h"
#include "quantization/pattern.h"

namespace kilter::plan_test {

using namespace testing;

Value* conv(Graph& graph, Value* x, int64_t in, int64_t out, const std::string& name) {
    Value* y = graph.add("Conv", {x, weights(graph, {out, in, 1, 1}, 1)}, {}, name);
    infer_types(graph);
    return y;
}

// x → Relu → conv1 → pool → conv2 → tail pool, and an Add beside the inputs that no convolution precedes.
Graph small_network() {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 3, 8, 8}});
    Value* first = graph.add("Add", {x, graph.add("Sigmoid", {x}, {}, "gate")}, {}, "early_add");
    first->type = x->type;
    Value* y = conv(graph, first, 3, 4, "conv1");
    y->producer()->origins = {"stem/conv", "stem/bn"};
    y = graph.add("MaxPool", {y}, ints_attribute("kernel_shape", {2, 2}), "pool");
    infer_types(graph);
    y = conv(graph, y, 4, 4, "conv2");
    y = graph.add("GlobalAveragePool", {y}, {}, "tail");
    graph.add_output(y, "y");
    graph.sort();
    infer_types(graph);
    return graph;
}

std::string error_of(const std::function<void()>& function) {
    try {
        function();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(Plan, SmartKeepsOnlyWhatLiesBetweenProducts) {
    const Plan plan = default_plan(small_network(), Mode::smart);
    EXPECT_EQ(plan.find("conv1")->precision, Precision::int8);
    EXPECT_EQ(plan.find("pool")->precision, Precision::int8);
    EXPECT_EQ(plan.find("early_add")->precision, Precision::f32);
    EXPECT_EQ(plan.find("tail")->precision, Precision::f32);
    EXPECT_EQ(plan.find("gate"), nullptr);
}

TEST(Plan, FullTakesEverythingThatHasAnIntegerKernel) {
    const Plan plan = default_plan(small_network(), Mode::full);
    EXPECT_EQ(plan.count(Precision::int8), plan.operators.size());
    EXPECT_EQ(plan.find("early_add")->precision, Precision::int8);
}

TEST(Plan, ComesBackFromJson) {
    Plan plan = default_plan(small_network(), Mode::full);
    plan.operators[0].precision = Precision::f32;
    plan.operators[1].activation = {DType::u8, Scheme::sym, RangeAlgorithm::percentile, 99.9};
    plan.operators[1].weights.bits = 7;
    plan.operators[1].weights.granularity = Granularity::per_tensor;
    const Plan again = Plan::from_json(plan.json());
    EXPECT_EQ(again, plan);
    EXPECT_EQ(again.hash(), plan.hash());
    EXPECT_EQ(diff(plan, again), "");
}

TEST(Plan, HashesAreStableAndTellPlansApart) {
    Plan plan;
    EXPECT_EQ(plan.hash(), Plan().hash());
    plan.operators.push_back({"conv", "Conv"});
    const uint64_t before = plan.hash();
    // Written down from the first version: journals of tuning runs depend on it.
    EXPECT_EQ(before, 0x261be359de6a67beULL);
    plan.operators[0].precision = Precision::f32;
    EXPECT_NE(plan.hash(), before);
    EXPECT_NE(diff(Plan::from_json(plan.json()), Plan()), "");
}

TEST(Plan, OverridesApplyToModelTypesAndNames) {
    Plan plan = default_plan(small_network());
    plan.apply(
        {Override::Of::model, {}, {.algorithm = RangeAlgorithm::kl, .granularity = Granularity::per_tensor}});
    EXPECT_EQ(plan.find("pool")->activation.algorithm, RangeAlgorithm::kl);
    EXPECT_EQ(plan.find("conv1")->weights.granularity, Granularity::per_tensor);
    plan.apply({Override::Of::type, "Conv", {.bits = 7}});
    EXPECT_EQ(plan.find("conv2")->weights.bits, 7);
    plan.apply({Override::Of::name, "conv1", {.precision = Precision::f32}});
    EXPECT_EQ(plan.find("conv1")->precision, Precision::f32);
    EXPECT_EQ(plan.find("conv2")->precision, Precision::int8);
}

TEST(Plan, KnowsTheNamesOfFusedOperators) {
    Plan plan = default_plan(small_network());
    plan.apply({Override::Of::name, "stem/bn", {.precision = Precision::f32}});
    EXPECT_EQ(plan.find("conv1")->precision, Precision::f32);
    EXPECT_EQ(plan.matching("stem/*").size(), 1U);
    EXPECT_EQ(plan.matching("re:conv[12]").size(), 2U);
    EXPECT_EQ(plan.matching("type:Conv").size(), 2U);
}

TEST(Plan, SaysWhatMatchesNothingAndWhatCannotBe) {
    Plan plan = default_plan(small_network());
    EXPECT_EQ(error_of([&] {
                  plan.apply({Override::Of::name, "conv9", {}});
              }),
              "'conv9' matches no operator that can be quantized");
    EXPECT_EQ(error_of([&] {
                  plan.apply({Override::Of::name, "pool", {.bits = 7}});
              }),
              "operator 'pool' (MaxPool) has no weights");
    EXPECT_EQ(error_of([&] {
                  plan.apply({Override::Of::name, "pool", {.precision = Precision::bf16}});
              }),
              "operator 'pool' (MaxPool) cannot have precision bf16");
    EXPECT_EQ(error_of([&] {
                  plan.apply({Override::Of::model, {}, {.bits = 9}});
              }),
              "weights of 9 bits; expected 2 to 8");
    EXPECT_NE(error_of([&] { plan.matching("re:["); }).find("is no regular expression"), std::string::npos);
}

TEST(Plan, UnknownKeysAreErrors) {
    EXPECT_EQ(error_of([] { Plan::from_json(R"({"mode": "smart", "operators": [], "extra": 1})"); }),
              "the plan: unknown key 'extra'; known are mode, operators");
    EXPECT_EQ(error_of([] { Plan::from_json("[]"); }), "the plan must be a JSON object");
    EXPECT_EQ(error_of([] { Plan::from_json("{"); }), "the plan is no JSON");
    EXPECT_EQ(
        error_of([] { parse_overrides(R"({"types": {"Conv": {"algoritm": "kl"}}})"); }),
        "overrides, 'Conv': unknown key 'algoritm'; known are precision, scheme, algorithm, percentile, weights, "
        "bits");
}

TEST(Plan, OverridesComeFromJson) {
    const auto rules = parse_overrides(R"({"model": {"algorithm": "percentile", "percentile": 99.9},
        "types": {"MatMul": {"weights": "per-tensor"}}, "operators": {"re:conv.*": {"precision": "f32", "bits": 7}}})");
    ASSERT_EQ(rules.size(), 3U);
    EXPECT_EQ(rules[0].of, Override::Of::model);
    EXPECT_EQ(rules[0].choice.percentile, 99.9);
    EXPECT_EQ(rules[1].choice.granularity, Granularity::per_tensor);
    EXPECT_EQ(rules[2].pattern, "re:conv.*");
    EXPECT_EQ(rules[2].choice.precision, Precision::f32);
}

TEST(Plan, OperatorsOfOneNameAreToldApart) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 3, 4, 4}});
    Value* y = conv(graph, conv(graph, x, 3, 3, "conv"), 3, 3, "conv");
    graph.add_output(y);
    const Plan plan = default_plan(graph);
    ASSERT_EQ(plan.operators.size(), 2U);
    EXPECT_EQ(plan.operators[0].name, "conv");
    EXPECT_EQ(plan.operators[1].name, "conv#2");
}

TEST(Pattern, GlobsMatchPartsOfNames) {
    EXPECT_TRUE(Pattern("layer?/*").matches("layer1/conv/x"));
    EXPECT_FALSE(Pattern("layer?/*").matches("layer12/conv"));
    EXPECT_TRUE(Pattern("*").matches(""));
    EXPECT_TRUE(Pattern("a*b*c").matches("aXbYbZc"));
    EXPECT_FALSE(Pattern("a*b*c").matches("aXbYbZ"));
    EXPECT_TRUE(Pattern("re:a.c").matches("abc"));
    EXPECT_FALSE(Pattern("re:a.c").matches("xabc"));
}

TEST(Capabilities, TableHasARowForEveryOperator) {
    const std::string table = capability_table();
    for (const Capability& row : capabilities()) EXPECT_NE(table.find(row.op), std::string::npos) << row.op;
    EXPECT_EQ(find_capability("Softmax"), nullptr);
}

}  // namespace kilter::plan_test
