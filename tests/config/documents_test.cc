// Configurations with the facts of the examples that LPOT, INC and MXNet published: they mean what they meant there.
#include <gtest/gtest.h>

#include "config/testing.h"

namespace kilter::documents_test {

TEST(Documents, BertOnSquad) {
    const Config config = parse_config(R"(
model: {name: bert, framework: tensorflow, inputs: 'input_file, batch_size', outputs: 'IteratorGetNext:3, unstack:0, unstack:1'}
quantization:
  calibration: {sampling_size: 500}
  model_wise: {weight: {granularity: per_channel}}
  op_wise: {'MatMul': {'activation': {'dtype': ['fp32']}, 'weight': {'dtype': ['fp32']},}}
tuning:
  accuracy_criterion: {relative: 0.01}
  exit_policy: {timeout: 0, max_trials: 100}
  random_seed: 9527
)");
    EXPECT_EQ(config.model.inputs, (std::vector<std::string>{"input_file", "batch_size"}));
    EXPECT_EQ(config.model.outputs.at(2), "unstack:1");
    EXPECT_EQ(config.quantization.calibration.sampling_sizes, (std::vector<int64_t>{500}));
    ASSERT_EQ(config.quantization.rules.size(), 2U);
    EXPECT_EQ(config.quantization.rules[0].granularities, (std::vector{Granularity::per_channel}));
    // An operator of that name, not the type.
    EXPECT_EQ(config.quantization.rules[1].of, Override::Of::name);
    EXPECT_EQ(config.quantization.rules[1].pattern, "MatMul");
    EXPECT_EQ(config.quantization.rules[1].precisions, (std::vector{Precision::f32}));
    EXPECT_EQ(config.tuning.exit_policy.timeout, 0.0);
    EXPECT_EQ(config.tuning.random_seed, 9527);
}

TEST(Documents, BlendCnn) {
    const Config config = parse_config(R"(
model:                      # with comments
  name: blendcnn
  framework: pytorch

tuning:
  accuracy_criterion: {relative:  0.01}
  exit_policy: {timeout: 0}
  random_seed: 9527
)");
    EXPECT_EQ(config.model.framework, "pytorch");
    EXPECT_EQ(config.tuning.exit_policy.max_trials, 100);
    EXPECT_TRUE(config.accuracy.metrics.empty());
}

TEST(Documents, MxnetBasicAndMse) {
    const Config basic = parse_config(
        "version: 1.0\nmodel: {name: cnn, framework: mxnet}\nquantization: {calibration: {sampling_size: 160}}\n"
        "tuning: {strategy: {name: basic}, accuracy_criterion: {relative: 0.01}, exit_policy: {timeout: 0}, random_seed: 9527}\n");
    EXPECT_EQ(basic.tuning.strategy.name, "basic");
    EXPECT_EQ(basic.quantization.calibration.sampling_sizes.at(0), 160);
    const Config mse = parse_config(
        "version: 1.0\nmodel: {name: resnet50_v2, framework: mxnet}\nquantization: {calibration: {sampling_size: 192}}\n"
        "tuning: {strategy: {name: mse}, accuracy_criterion: {relative: 0.015}, exit_policy: {timeout: 0, max_trials: 500}}\n");
    EXPECT_EQ(mse.tuning.accuracy_criterion.loss, 0.015);
    EXPECT_EQ(mse.tuning.exit_policy.max_trials, 500);
}

}  // namespace kilter::documents_test
