#include "kilter/tuning/evaluation.h"

#include <gtest/gtest.h>

#include "kilter/base/error.h"

namespace kilter::evaluation_test {

// A model that gives back what it is given: batches are its answers.
Program identity() {
    Model model;
    model.opsets = {{"", kCanonicalOpset}};
    Value* x = model.graph.add_input("x", {DType::f32, {Dim("n"), 3}});
    model.graph.add_output(model.graph.add("Identity", {x}), "y");
    return Program(std::move(model), {.threads = 1});
}

// `count` samples in batches of two; every third one is wrong.
struct Samples {
    int count = 30;
    std::shared_ptr<int> opened = std::make_shared<int>(0);
    std::shared_ptr<int> given = std::make_shared<int>(0);
    int wrong_every = 3;

    std::function<BatchSource()> source() const {
        return [*this]() -> BatchSource {
            ++*opened;
            auto next = std::make_shared<int>(0);
            return [*this, next]() -> std::optional<Batch> {
                if (*next >= count) return std::nullopt;
                const int size = std::min(2, count - *next);
                Batch batch;
                Tensor rows(DType::f32, {size, 3});
                for (int i = 0; i < size; ++i) {
                    const int label = *next % 3;
                    const int answer = *next % wrong_every == 0 ? (label + 1) % 3 : label;
                    for (int c = 0; c < 3; ++c)
                        rows.as_mutable<float>()[static_cast<size_t>(3 * i + c)] = c == answer ? 1 : 0;
                    batch.labels.push_back({{"label", Tensor::scalar<int64_t>(label)}});
                    ++*next;
                    ++*given;
                }
                batch.inputs = {std::move(rows)};
                return batch;
            };
        };
    }
};

std::vector<std::unique_ptr<Metric>> topk() {
    std::vector<std::unique_ptr<Metric>> metrics;
    metrics.push_back(make_metric({"topk", {}}));
    return metrics;
}

TEST(Evaluation, GivesTheSameHoweverManyInstancesThereAre) {
    const Program program = identity();
    for (const int instances : {1, 2, 5}) {
        const Samples samples{.count = 31};
        const auto evaluation = evaluate_with(samples.source(), topk(), {.instances = instances});
        const EvaluationRun run = evaluation->run(program, nullptr);
        EXPECT_EQ(run.samples, 31);
        EXPECT_DOUBLE_EQ(run.accuracy.at(0), 20.0 / 31) << instances;
        ASSERT_EQ(run.per_sample.size(), 31U);
        for (size_t i = 0; i < 31; ++i)
            EXPECT_EQ(run.per_sample[i], i % 3 == 0 ? 0 : 1) << "in the order of the samples";
    }
}

TEST(Evaluation, ReadsSamplesOnceWhenTheyFitIntoMemory) {
    const Program program = identity();
    const Samples samples;
    const auto evaluation = evaluate_with(samples.source(), topk());
    const uint64_t fingerprint = evaluation->fingerprint();
    for (int i = 0; i < 3; ++i) evaluation->run(program, nullptr);
    EXPECT_EQ(*samples.opened, 1);

    const Samples many;
    const auto poor = evaluate_with(many.source(), topk(), {.memory = 100});
    EXPECT_EQ(poor->fingerprint(), fingerprint);
    for (int i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(poor->run(program, nullptr).accuracy[0], 20.0 / 30);
    EXPECT_EQ(*many.opened, 4);
}

TEST(Evaluation, FingerprintsTellDataApart) {
    const auto of = [](const Samples& samples) {
        return evaluate_with(samples.source(), topk())->fingerprint();
    };
    EXPECT_EQ(of({}), of({}));
    EXPECT_NE(of({}), of({.count = 29}));
    EXPECT_NE(of({}), of({.wrong_every = 4}));
}

TEST(Evaluation, RejectsEarlyOnlyWhatFallsShort) {
    const Program program = identity();
    const Samples samples{.count = 400, .wrong_every = 2};  // every second one is wrong
    const auto evaluation = evaluate_with(samples.source(), topk());
    const std::vector<double> all_right(400, 1.0), same = evaluation->run(program, nullptr).per_sample;
    Rejection rejection{.baseline = &all_right, .allowed_loss = 0.01};
    const EvaluationRun hopeless = evaluation->run(program, &rejection);
    EXPECT_TRUE(hopeless.rejected);
    EXPECT_LT(hopeless.samples, 100);
    rejection.baseline = &same;
    const EvaluationRun equal = evaluation->run(program, &rejection);
    EXPECT_FALSE(equal.rejected);
    EXPECT_EQ(equal.samples, 400);
}

TEST(Evaluation, ErrorsOfTheSourceAndOfProgressReachTheCaller) {
    const Program program = identity();
    const auto broken = [] {
        return BatchSource([]() -> std::optional<Batch> { throw Error("image 7 is damaged"); });
    };
    for (const int instances : {1, 3}) {
        const auto evaluation = evaluate_with(broken, topk(), {.instances = instances});
        EXPECT_THROW(evaluation->run(program, nullptr), Error);
        const auto stopped = evaluate_with(Samples().source(), topk(),
                                           {.instances = instances, .progress = [](int64_t samples) {
                                                if (samples > 4) throw std::runtime_error("enough");
                                            }});
        EXPECT_THROW(stopped->run(program, nullptr), std::runtime_error);
    }
    const auto nothing = evaluate_with(Samples{.count = 0}.source(), topk());
    EXPECT_THROW(nothing->run(program, nullptr), Error);
}

TEST(Evaluation, MetricsCanCompareWithFp32) {
    const Program program = identity();
    std::vector<std::unique_ptr<Metric>> metrics;
    metrics.push_back(make_metric({"MSE", Settings{{"compare_label", false}}}));
    const auto evaluation = evaluate_with(Samples().source(), std::move(metrics), {.instances = 2});
    ASSERT_TRUE(evaluation->needs_reference());
    EXPECT_THROW(evaluation->run(program, nullptr), Error) << "nobody said what FP32 gives";
    evaluation->set_reference(program);
    EXPECT_EQ(evaluation->run(program, nullptr).accuracy, Accuracy{0.0});

    Model model;  // twice the answers: 1 becomes 2 in one of three places
    model.opsets = {{"", kCanonicalOpset}};
    Value* x = model.graph.add_input("x", {DType::f32, {Dim("n"), 3}});
    model.graph.add_output(model.graph.add("Add", {x, x}), "y");
    EXPECT_NEAR(evaluation->run(Program(std::move(model), {.threads = 1}), nullptr).accuracy[0], 1.0 / 3,
                1e-6);
}

TEST(Evaluation, FunctionsGiveOneFigureForEachDirection) {
    const Program program = identity();
    const auto good = evaluate_with([](const Program&) { return Accuracy{0.5, 2}; }, {true, false});
    EXPECT_EQ(good->run(program, nullptr).accuracy, (Accuracy{0.5, 2}));
    const auto bad = evaluate_with([](const Program&) { return Accuracy{0.5, 2}; });
    EXPECT_THROW(bad->run(program, nullptr), Error);
}

}  // namespace kilter::evaluation_test
