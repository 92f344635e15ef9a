// model_wise, optype_wise and op_wise as rules and overrides.
#include <gtest/gtest.h>

#include "config/testing.h"
#include "quantization/pattern.h"

namespace kilter::operator_rules_test {

std::vector<OperatorRule> rules(const std::string& yaml) {
    return parse_config("quantization:\n" + yaml, "a.yaml").quantization.rules;
}

TEST(OperatorRules, GiveTheFirstOfEachListAndKeepTheRest) {
    const auto all = rules(R"(
  model_wise: {weight: {granularity: per_tensor, bit: 6}, activation: {algorithm: [kl, minmax], scheme: sym, dtype: [uint8, fp32]}}
)");
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].of, Override::Of::model);
    EXPECT_EQ(all[0].precisions, (std::vector{Precision::int8, Precision::f32}));
    EXPECT_EQ(all[0].algorithms, (std::vector{RangeAlgorithm::kl, RangeAlgorithm::minmax}));
    EXPECT_EQ(all[0].bits, 7);
    const std::vector<Choice> choices = all[0].choices();
    ASSERT_EQ(choices.size(), 3U);  // two algorithms on integers, and FP32
    EXPECT_EQ(choices[0].algorithm, RangeAlgorithm::kl);
    EXPECT_EQ(choices[0].granularity, Granularity::per_tensor);
    EXPECT_EQ(choices[0].scheme, Scheme::sym);
    EXPECT_EQ(choices[1].algorithm, RangeAlgorithm::minmax);
    EXPECT_EQ(choices[2].precision, Precision::f32);
    EXPECT_FALSE(choices[2].algorithm.has_value());
}

TEST(OperatorRules, AllBitsOfAnInt8AreSevenAndTheSign) {
    EXPECT_EQ(rules("  model_wise: {weight: {bit: 7.0}}")[0].bits, 8);
    EXPECT_EQ(rules("  model_wise: {weight: {bit: 0.2}}")[0].bits, 2);
}

TEST(OperatorRules, ARuleForATypeReplacesTheOneForTheModel) {
    const auto all = rules(R"(
  model_wise: {weight: {granularity: per_tensor}, activation: {algorithm: kl, dtype: fp32}}
  optype_wise: {Conv2D: {activation: {scheme: sym}}}
)");
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[1].of, Override::Of::type);
    EXPECT_EQ(all[1].pattern, "Conv");
    EXPECT_EQ(all[1].schemes, (std::vector{Scheme::sym}));
    EXPECT_EQ(all[1].granularities, (std::vector{Granularity::per_channel}));
    EXPECT_EQ(all[1].algorithms, (std::vector{RangeAlgorithm::minmax}));
    EXPECT_EQ(all[1].precisions, (std::vector{Precision::int8}));
}

TEST(OperatorRules, NamesAreExactOrExpressionsForTheBeginning) {
    const auto all = rules(R"(
  op_wise:
    layer1/conv.0-a_b: {activation: {dtype: fp32}}
    'conv[0-9]+': {weight: {dtype: ['fp32']}}
)");
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].pattern, "layer1/conv.0-a_b");
    EXPECT_EQ(all[0].precisions, (std::vector{Precision::f32}));
    const Pattern second(all[1].pattern);
    EXPECT_TRUE(second.matches("conv12"));
    EXPECT_TRUE(second.matches("conv12/bias"));
    EXPECT_FALSE(second.matches("my_conv12"));
    EXPECT_FALSE(second.matches("convx"));
    EXPECT_TRUE(contains(complaint("quantization:\n  op_wise:\n    '*conv': {activation: {dtype: fp32}}\n"),
                         "a.yaml:3: quantization.op_wise.*conv: '*conv' is no regular expression"));
}

TEST(OperatorRules, OneOperatorHasOnePrecision) {
    EXPECT_EQ(
        rules("  op_wise: {a: {weight: {dtype: [int8, fp32]}, activation: {dtype: [fp32]}}}")[0].precisions,
        (std::vector{Precision::f32}));
    EXPECT_TRUE(contains(
        complaint("quantization: {op_wise: {a: {weight: {dtype: int8}, activation: {dtype: fp32}}}}"),
        "a.yaml:1: quantization.op_wise.a: activation.dtype and weight.dtype have nothing in common"));
    EXPECT_TRUE(contains(complaint("quantization: {op_wise: {a: {weight: {dtype: fp16}}}}"),
                         "kilter does not compute in fp16"));
}

TEST(OperatorRules, BecomeOverridesOfAPlan) {
    const Config config = parse_config(R"(
quantization:
  model_wise: {activation: {algorithm: [minmax, kl]}}
  op_wise: {fc: {activation: {dtype: bf16}}}
)");
    const std::vector<Override> overrides = first_choices(config);
    ASSERT_EQ(overrides.size(), 2U);
    EXPECT_EQ(overrides[0].choice.algorithm, RangeAlgorithm::minmax);
    EXPECT_EQ(overrides[1].of, Override::Of::name);
    EXPECT_EQ(overrides[1].choice.precision, Precision::bf16);
    EXPECT_TRUE(first_choices(Config()).empty());
}

}  // namespace kilter::operator_rules_test
