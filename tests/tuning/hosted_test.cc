#include "kilter/tuning/hosted.h"

#include <gtest/gtest.h>

#include "kilter/base/error.h"
#include "tuning/fake_backend.h"

namespace kilter::hosted_test {

using testing::error_of;
using testing::MemoryFolder;

// A model somewhere else: every operator on integers costs a known share of the accuracy.
class FakeHost : public Host {
  public:
    explicit FakeHost(std::vector<double> losses) : losses_(std::move(losses)) {}

    std::vector<HostedOperator> operators() override {
        std::vector<HostedOperator> operators;
        for (size_t i = 0; i < losses_.size(); ++i) {
            HostedOperator entry;
            entry.plan.name = "op" + std::to_string(i);
            entry.plan.op = i == 1 ? "Conv" : "MatMul";
            entry.multiplications = 1;
            entry.weight_bytes = 100;
            operators.push_back(entry);
        }
        return operators;
    }
    double bytes() const override { return 1000; }
    HostedRun run(const Plan* plan) override {
        ++runs;
        double accuracy = 1;
        double milliseconds = 10;
        for (size_t i = 0; plan != nullptr && i < losses_.size(); ++i) {
            if (plan->operators[i].precision != Precision::int8) continue;
            accuracy -= losses_[i];
            milliseconds -= 1;
        }
        return {{accuracy}, milliseconds, 50};
    }
    std::vector<double> noise(const Plan& plan) override {
        std::vector<double> noise;
        for (size_t i = 0; i < losses_.size(); ++i)
            noise.push_back(plan.operators[i].precision == Precision::int8 ? losses_[i] : 0);
        return noise;
    }
    void keep(const Plan& plan, const std::filesystem::path& /*workspace*/) override { kept = plan; }
    uint64_t fingerprint() override { return model; }
    uint64_t calibration_fingerprint() override { return 2; }

    int runs = 0;
    uint64_t model = 1;
    Plan kept;

  private:
    std::vector<double> losses_;
};

TEST(Hosted, SparesWhatThePromiseNeedsAndNoMore) {
    FakeHost host({0.001, 0.02, 0.0, 0.05});
    const HostedResult result = tune_hosted(host);
    EXPECT_TRUE(result.met);
    EXPECT_EQ(result.plan.operators[0].precision, Precision::int8);
    EXPECT_EQ(result.plan.operators[1].precision, Precision::f32);
    EXPECT_EQ(result.plan.operators[2].precision, Precision::int8);
    EXPECT_EQ(result.plan.operators[3].precision, Precision::f32);
    EXPECT_DOUBLE_EQ(result.best.outcome.cost.milliseconds, 8);
    EXPECT_DOUBLE_EQ(result.best.outcome.cost.bytes, 850);
    EXPECT_EQ(result.best.outcome.samples, 50);
    ASSERT_EQ(result.spared.size(), 2U);
    EXPECT_EQ(result.spared[1].name, "op3");
    EXPECT_NE(result.spared[1].reason.find("% of the error"), std::string::npos) << result.spared[1].reason;
}

TEST(Hosted, RulesAndExclusionsHold) {
    FakeHost host({0.0, 0.0, 0.0});
    TuneOptions options;
    options.quantize.exclude = {"op1"};
    SpaceRule rule;
    rule.of = Override::Of::name;
    rule.pattern = "op2";
    rule.precisions = {Precision::f32};
    options.rules = {rule};
    const HostedResult result = tune_hosted(host, options);
    EXPECT_EQ(result.plan.count(Precision::int8), 1U);
    EXPECT_EQ(result.plan.operators[0].precision, Precision::int8);
    options.rules[0].pattern = "op7";
    EXPECT_NE(error_of([&] { tune_hosted(host, options); }).find("'op7' matches no operator"),
              std::string::npos);
}

TEST(Hosted, EveryStrategyRuns) {
    for (const char* name :
         {"auto", "basic", "mse", "mse_v2", "bayesian", "random", "exhaustive", "tpe", "conservative"}) {
        FakeHost host({0.001, 0.02, 0.0, 0.001});
        TuneOptions options;
        options.strategy = name;
        options.exit.timeout = 0;
        EXPECT_TRUE(tune_hosted(host, options).met) << name;
    }
}

TEST(Hosted, AStudyIsResumedWithoutEvaluatingAgain) {
    const MemoryFolder folder;
    TuneOptions options;
    options.workspace = folder.path();
    FakeHost first({0.001, 0.02, 0.0, 0.05});
    const HostedResult before = tune_hosted(first, options);
    EXPECT_EQ(first.kept, before.plan);
    options.resume = true;
    FakeHost second({0.001, 0.02, 0.0, 0.05});
    const HostedResult after = tune_hosted(second, options);
    EXPECT_EQ(second.runs, 0);
    EXPECT_EQ(after.plan, before.plan);
    EXPECT_EQ(second.kept, before.plan);
    FakeHost other({0.001, 0.02, 0.0, 0.05});
    other.model = 7;
    EXPECT_NE(error_of([&] { tune_hosted(other, options); }).find("the model changed"), std::string::npos);
    EXPECT_NE(error_of([&] { recover(folder.path(), 0); }).find("kilter cannot build it again"),
              std::string::npos);
}

}  // namespace kilter::hosted_test
