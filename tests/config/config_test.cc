// What configurations mean, and what is said about those that mean nothing.
#include <gtest/gtest.h>

#include "config/testing.h"

namespace kilter::config_test {

TEST(Config, AnEmptyFileIsTheDefault) {
    for (const char* text : {"", "{}", "~", "# nothing\n", "model:\nquantization:\ntuning:\n"}) {
        const Config config = parse_config(text);
        EXPECT_EQ(describe(config), describe(Config())) << text;
        EXPECT_EQ(config.tuning.exit_policy.max_trials, 100);
        EXPECT_EQ(config.tuning.accuracy_criterion.loss, 0.01);
        EXPECT_EQ(config.tuning.strategy.name, "auto");
        EXPECT_EQ(config.quantization.calibration.sampling_sizes, (std::vector<int64_t>{100}));
    }
}

TEST(Config, ReadsAWholeFile) {
    const Config config = parse_config(R"(
version: 1.0
model: {name: resnet, framework: onnxrt_qdq, inputs: "image, size", outputs: [logits]}
device: cpu
quantization:
  approach: post_training_static_quant
  calibration:
    sampling_size: 50, 100
    dataloader:
      batch_size: 10
      last_batch: discard
      shuffle: True
      dataset: {ImageFolder: {root: images}}
      transform:
        Resize: {size: 256}
        CenterCrop: {size: !!python/tuple [224, 224]}
        Rescale:
      filter: {LabelBalance: {size: 1}}
  recipes: {first_conv_or_matmul_quantization: False, fast_bias_correction: False}
evaluation:
  accuracy:
    metric: {topk: 5}
    iteration: 20
    configs: {cores_per_instance: 4, num_of_instance: 7}
    dataloader: {dataset: {dummy: {shape: [1, 3, 8, 8]}}}
    postprocess: {transform: {LabelShift: 1}}
  performance: {warmup: 3, iteration: 30}
tuning:
  strategy: {name: tpe, accuracy_weight: 2, latency_weight: 0.5}
  accuracy_criterion: {absolute: 0.5, higher_is_better: False}
  objective: modelsize
  exit_policy: {timeout: 60, max_trials: 7, performance_only: True}
  random_seed: 9527
  workspace: {path: ./here, resume: ./there}
  diagnosis: {diagnosis_after_tuning: True, op_list: [a, b], iteration_list: 3}
mixed_precision: {precisions: bf16}
)");
    EXPECT_EQ(config.model.inputs, (std::vector<std::string>{"image", "size"}));
    EXPECT_EQ(config.model.outputs, (std::vector<std::string>{"logits"}));
    EXPECT_EQ(config.quantization.calibration.sampling_sizes, (std::vector<int64_t>{50, 100}));
    const LoaderConfig& loader = *config.quantization.calibration.dataloader;
    EXPECT_EQ(loader.batch_size, 10);
    EXPECT_EQ(loader.last_batch, LastBatch::discard);
    EXPECT_TRUE(loader.shuffle);
    EXPECT_EQ(loader.dataset.name, "ImageFolder");
    EXPECT_EQ(loader.dataset.settings.get("root", ""), "images");
    ASSERT_EQ(loader.transforms.size(), 3U);
    EXPECT_EQ(loader.transforms[1].settings.get("size").as_ints(), (std::vector<int64_t>{224, 224}));
    EXPECT_EQ(loader.transforms[2].name, "Rescale");
    EXPECT_EQ(loader.filters.at(0).name, "LabelBalance");
    EXPECT_TRUE(config.quantization.recipes.float_first);
    EXPECT_FALSE(config.quantization.recipes.bias_correction);
    ASSERT_EQ(config.accuracy.metrics.size(), 1U);
    EXPECT_EQ(config.accuracy.metrics[0].component.name, "topk");
    EXPECT_EQ(config.accuracy.metrics[0].component.settings.get("k", 0), 5);
    EXPECT_EQ(config.accuracy.iteration, 20);
    EXPECT_EQ(config.accuracy.configs.instances, 7);
    EXPECT_EQ(config.accuracy.configs.cores_per_instance, 4);
    EXPECT_EQ(config.accuracy.postprocess.at(0).settings.as_int(), 1);
    EXPECT_EQ(config.performance.warmup, 3);
    EXPECT_EQ(config.tuning.strategy.accuracy_weight, 2);
    EXPECT_FALSE(config.tuning.accuracy_criterion.relative);
    EXPECT_EQ(config.tuning.accuracy_criterion.loss, 0.5);
    EXPECT_EQ(config.tuning.accuracy_criterion.higher_is_better, false);
    EXPECT_EQ(config.tuning.objectives.at(0).kind, ObjectiveConfig::Kind::modelsize);
    EXPECT_EQ(config.tuning.exit_policy.timeout, 60);
    EXPECT_TRUE(config.tuning.exit_policy.performance_only);
    EXPECT_EQ(config.tuning.workspace, "./here");
    EXPECT_TRUE(config.tuning.diagnosis->after_tuning);
    EXPECT_EQ(config.tuning.diagnosis->iteration_list, (std::vector<int64_t>{3}));
    EXPECT_EQ(config.mixed_precision->precisions, (std::vector{Precision::bf16}));
    ASSERT_EQ(config.notes.size(), 2U);
    EXPECT_TRUE(contains(config.notes[0], "dataloader.filter: no effect"));
    EXPECT_TRUE(contains(config.notes[1], "dataloader.shuffle: no effect"));
}

double relative(const std::string& value) {
    return parse_config("tuning: {accuracy_criterion: {relative: " + value + "}}")
        .tuning.accuracy_criterion.loss;
}

TEST(Config, NumbersMayBeWrittenInEveryWay) {
    EXPECT_EQ(relative("0.01"), 0.01);
    EXPECT_EQ(relative("1e-2"), 0.01);
    EXPECT_EQ(relative("1%"), 0.01);
    EXPECT_EQ(relative("\"1 %\""), 0.01);
    EXPECT_EQ(relative("'0.01'"), 0.01);
    EXPECT_EQ(relative("0"), 0.0);
    EXPECT_EQ(relative("-0.5"), -0.5);
    EXPECT_EQ(parse_config("tuning: {exit_policy: {timeout: 0.5, max_trials: '1e2'}}")
                  .tuning.exit_policy.max_trials,
              100);
    EXPECT_EQ(parse_config("tuning: {accuracy_criterion: {absolute: 1}}").tuning.accuracy_criterion.loss,
              1.0);
}

TEST(Config, ValuesOutOfRangeAreExplained) {
    EXPECT_EQ(
        complaint("tuning:\n  accuracy_criterion:\n    relative: 1\n"),
        "a.yaml:3: tuning.accuracy_criterion.relative: expected a number or a percentage above -1 and below 1, "
        "found 1 | a relative loss of one percent is written 0.01 or 1%");
    EXPECT_EQ(complaint("tuning: {exit_policy: {max_trials: 0}}"),
              "a.yaml:1: tuning.exit_policy.max_trials: expected a whole number of at least 1, found 0");
    EXPECT_EQ(complaint("tuning: {exit_policy: {max_trials: many}}"),
              "a.yaml:1: tuning.exit_policy.max_trials: expected a whole number of at least 1, found 'many'");
    EXPECT_TRUE(
        contains(complaint("tuning: {random_seed: .nan}"), "tuning.random_seed: expected a whole number"));
    EXPECT_EQ(complaint("quantization: {model_wise: {weight: {bit: 8}}}"),
              "a.yaml:1: quantization.model_wise.weight.bit: expected a number above 0 and up to 7, found 8");
}

TEST(Config, UnknownKeysAreNamedWithTheNearest) {
    EXPECT_EQ(
        complaint("tuning:\n  exit_policy:\n    time_out: 3\n"),
        "a.yaml:3: tuning.exit_policy.time_out: there is no key 'time_out' | did you mean 'timeout'? allowed "
        "here: timeout, max_trials, performance_only");
    EXPECT_TRUE(contains(complaint("quantisation: {}"), "did you mean 'quantization'?"));
    EXPECT_TRUE(contains(complaint("tuning:\n  relative: 0.01\n"),
                         "a.yaml:2: tuning.relative: there is no key 'relative' | 'relative' belongs to "
                         "tuning.accuracy_criterion; allowed here: strategy, "));
    EXPECT_TRUE(contains(complaint("model: {framework: Tensorflow}"), "did you mean 'tensorflow'?"));
}

TEST(Config, WhatKilterDoesNotDoIsRefusedByName) {
    for (const char* text :
         {"pruning: {}", "distillation: {}", "nas: {}", "auto_distillation: {}", "model_conversion: {}",
          "quantization: {train: {}}", "quantization: {approach: quant_aware_training}",
          "quantization: {approach: post_training_dynamic_quant}", "tuning: {strategy: {name: sigopt}}",
          "tuning: {strategy: {sigopt_api_token: x}}", "device: gpu"})
        EXPECT_TRUE(contains(complaint(text), "is not for kilter | ")) << text << ": " << complaint(text);
}

TEST(Config, ContradictionsAreErrors) {
    EXPECT_TRUE(contains(complaint("tuning: {accuracy_criterion: {relative: 0, absolute: 0}}"),
                         "give one of the two"));
    EXPECT_TRUE(contains(complaint("evaluation: {accuracy: {metric: topk, multi_metrics: {topk: 1}}}"),
                         "give one of the two"));
    EXPECT_TRUE(contains(complaint("tuning: {objective: accuracy, multi_objectives: {objective: accuracy}}"),
                         "give one of the two"));
    EXPECT_EQ(complaint("tuning: {multi_objectives: {objective: [accuracy, performance], weight: [1]}}"),
              "a.yaml:1: tuning.multi_objectives.weight: has 1 entries, there are 2 objectives");
    EXPECT_TRUE(contains(complaint("quantization: {calibration: {dataloader: {batch_size: 1}}}"),
                         "quantization.calibration.dataloader: 'dataset' is missing"));
    EXPECT_TRUE(contains(complaint("evaluation: {accuracy: {metric: {topk: 1, MSE: {}}}}"), "one name"));
}

TEST(Config, SeveralMetricsAndObjectives) {
    const Config config = parse_config(R"(
evaluation: {accuracy: {multi_metrics: {topk: 1, MSE: {compare_label: False}, weight: [0.5, 2], higher_is_better: [True, False]}}}
tuning: {multi_objectives: {objective: [accuracy, performance], weight: [1, 3]}}
)");
    ASSERT_EQ(config.accuracy.metrics.size(), 2U);
    EXPECT_TRUE(config.accuracy.weighted);
    EXPECT_EQ(config.accuracy.metrics[1].component.name, "MSE");
    EXPECT_EQ(config.accuracy.metrics[1].weight, 2);
    EXPECT_EQ(config.accuracy.metrics[1].higher_is_better, false);
    ASSERT_EQ(config.tuning.objectives.size(), 2U);
    EXPECT_EQ(config.tuning.objectives[1].weight, 3);
}

TEST(Config, DiagnosisMayBeSwitchedOff) {
    EXPECT_FALSE(parse_config("tuning: {diagnosis: False}").tuning.diagnosis);
    EXPECT_TRUE(parse_config("tuning: {diagnosis: True}").tuning.diagnosis->after_tuning);
}

TEST(Config, NotesSayWhatHasNoEffect) {
    const Config config = parse_config("evaluation: {performance: {configs: {kmp_blocktime: 1}}}", "a.yaml");
    ASSERT_EQ(config.notes.size(), 1U);
    EXPECT_EQ(
        config.notes[0],
        "a.yaml:1: evaluation.performance.configs.kmp_blocktime: no effect: it concerns threads of other runtimes");
}

TEST(Config, ProgramsMakeItFromSettings) {
    const Config config = make_config({{"tuning", {{"exit_policy", {{"timeout", 5}}}}}});
    EXPECT_EQ(config.tuning.exit_policy.timeout, 5);
    try {
        make_config({{"tuning", {{"exit_policy", {{"timeout", "soon"}}}}}});
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "tuning.exit_policy.timeout: expected a number of at least 0, found 'soon'");
    }
}

}  // namespace kilter::config_test
