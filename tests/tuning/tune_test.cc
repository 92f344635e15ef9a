// The tuner on a real model, small enough to tune in a fraction of a second. tests/python/test_tune.py does the same from outside.
#include "kilter/tuning/tune.h"

#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "kilter/formats/onnx.h"
#include "kilter/passes/passes.h"
#include "quantization/testing.h"

namespace kilter::tune_test {

using namespace testing;

constexpr int64_t kClasses = 4;

// A network of convolutions in which one has channels of very different sizes: with one scale for all of them most are lost.
Model hard_model() {
    Net net;
    Value* x = net.input({1, 3, 8, 8});
    Value* a = net.relu_conv(x, 8, "a");
    Value* b = net.relu_conv(a, 8, "b");
    Tensor weights = net.graph().constant(b->producer()->input(1))->clone();
    for (size_t i = 0; i < weights.as_mutable<float>().size(); ++i)
        weights.as_mutable<float>()[i] *= i < 8 ? 400.0F : 1.0F;  // the first output channel
    net.graph().replace_constant(b->producer()->input(1), weights);
    Value* c = net.relu_conv(b, 8, "c");
    Tensor reader = net.graph().constant(c->producer()->input(1))->clone();
    for (size_t i = 0; i < reader.as_mutable<float>().size(); i += 8) reader.as_mutable<float>()[i] /= 400.0F;
    net.graph().replace_constant(c->producer()->input(1), reader);
    Value* pooled = net.add("GlobalAveragePool", {net.conv(c, kClasses, "d")}, {}, "pool");
    net.output(net.add("Flatten", {pooled}, {}, "scores"));
    Model model;
    model.graph = std::move(net.graph());
    model.opsets = {{"", kCanonicalOpset}, {"kilter", 1}};
    return model;
}

std::function<BatchSource()> samples(const Model& model, int count, unsigned seed) {
    auto program = std::make_shared<Program>(clone(model));
    return [program, count, seed]() -> BatchSource {
        auto next = std::make_shared<int>(0);
        return [program, count, seed, next]() -> std::optional<Batch> {
            if (*next == count) return std::nullopt;
            Batch batch;
            batch.inputs = {random_tensor({1, 3, 8, 8}, seed + static_cast<unsigned>((*next)++))};
            const Tensor scores = program->run(batch.inputs)[0];
            const auto values = scores.as<float>();
            batch.labels.push_back(
                {{"label", Tensor::scalar<int64_t>(std::ranges::max_element(values) - values.begin())}});
            return batch;
        };
    };
}

std::unique_ptr<Evaluation> evaluation(const Model& model) {
    std::vector<std::unique_ptr<Metric>> metrics;
    metrics.push_back(make_metric({"topk", {}}));
    return evaluate_with(samples(model, 200, 1000), std::move(metrics));
}

// Outcomes that do not depend on how fast the machine is.
TuneOptions options() {
    TuneOptions options;
    options.objective = Objective::parse("modelsize");
    options.criterion = Criterion::parse("2%");
    options.samples = {20};
    Choice per_tensor;
    per_tensor.granularity = Granularity::per_tensor;
    options.quantize.overrides.push_back({Override::Of::model, "", per_tensor});
    return options;
}

std::filesystem::path fresh_folder(const char* name) {
    const auto path = std::filesystem::temp_directory_path() / fmt::format("kilter-{}-{}", name, ::getpid());
    std::filesystem::remove_all(path);
    return path;
}

TEST(Tune, KeepsThePromiseWhereQuantizingEverythingDoesNot) {
    const Model model = hard_model();
    const auto evaluate = evaluation(model);
    const TuneResult result = tune(model, samples(model, 20, 1), *evaluate, options());
    EXPECT_EQ(result.baseline.accuracy, Accuracy{1.0});
    EXPECT_FALSE(result.trials.front().met) << "the model should be hard";
    EXPECT_TRUE(result.met);
    EXPECT_GE(result.best.outcome.accuracy[0], 0.98);
    EXPECT_LT(result.best.outcome.cost.bytes, result.baseline.cost.bytes);
    // What is handed back is what was evaluated.
    const Program program(clone(result.model.model), {.threads = evaluate->threads()});
    EXPECT_EQ(evaluate->run(program, nullptr).accuracy, result.best.outcome.accuracy);
    EXPECT_FALSE(result.pareto.empty());
}

TEST(Tune, EveryStrategyReturnsAModelWhateverHappens) {
    const Model model = hard_model();
    const auto evaluate = evaluation(model);
    for (const char* strategy :
         {"auto", "basic", "mse", "mse_v2", "bayesian", "random", "exhaustive", "tpe", "conservative"}) {
        TuneOptions wanted = options();
        wanted.strategy = strategy;
        wanted.exit.max_trials = 6;
        wanted.criterion = Criterion::parse("-50%");  // cannot be met
        const TuneResult result = tune(model, samples(model, 20, 1), *evaluate, wanted);
        EXPECT_FALSE(result.met) << strategy;
        EXPECT_FALSE(result.model.model.graph.nodes().empty()) << strategy;
        EXPECT_LE(result.trials.size(), 6U) << strategy;
    }
}

TEST(Tune, ResumesAndRecoversWithoutCalibratingAgain) {
    const std::filesystem::path folder = fresh_folder("tune");
    std::filesystem::create_directories(folder);
    Model model = hard_model();
    expand_fused(model.graph);
    onnx::write(model, folder / "model.onnx");
    model = onnx::read((folder / "model.onnx").string());
    const auto evaluate = evaluation(model);
    TuneOptions wanted = options();
    wanted.workspace = folder / "study";
    const TuneResult first = tune(model, samples(model, 20, 1), *evaluate, wanted);
    EXPECT_THROW(tune(model, samples(model, 20, 1), *evaluate, wanted), Error) << "there is a study already";

    wanted.resume = true;
    int evaluations = 0;
    wanted.progress.working = [&](const std::string& what, int64_t, int64_t) {
        evaluations += what.starts_with("trial") || what.starts_with("calibrating") ? 1 : 0;
    };
    const TuneResult again = tune(model, samples(model, 20, 1), *evaluate, wanted);
    EXPECT_EQ(evaluations, 0) << "everything was in the journal";
    EXPECT_EQ(again.best.number, first.best.number);
    EXPECT_EQ(again.model.plan, first.model.plan);
    EXPECT_EQ(recover(wanted.workspace, first.best.number).plan, first.model.plan);
    EXPECT_THROW(recover(wanted.workspace, 99), Error);

    const auto refused = [&](const TuneOptions& changed, const std::function<BatchSource()>& calibration) {
        try {
            tune(model, calibration, *evaluate, changed);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_NE(refused(wanted, samples(model, 20, 2)).find("the calibration data changed"), std::string::npos);
    wanted.criterion.loss = 0.5;
    EXPECT_NE(refused(wanted, samples(model, 20, 1)).find("'criterion' changed"), std::string::npos);
    std::filesystem::remove_all(folder);
}

TEST(Sensitivity, RanksWhatIsHardFirst) {
    const Model model = hard_model();
    const std::vector<Sensitivity> rows = sensitivity(model, samples(model, 20, 1), options());
    ASSERT_GE(rows.size(), 4U);
    EXPECT_TRUE(rows[0].name == "b" || rows[0].name == "c") << rows[0].name;
    for (size_t i = 1; i < rows.size(); ++i) EXPECT_LE(rows[i].error, rows[i - 1].error);
}

}  // namespace kilter::tune_test
