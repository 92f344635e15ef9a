// topk and Accuracy on cases worked out by hand; tests/python/test_metrics.py compares them with scikit-learn.
#include <cmath>

#include <gtest/gtest.h>

#include "metrics/testing.h"

namespace kilter::classification_test {

TEST(TopK, CountsClassesAmongTheBest) {
    const auto outputs = floats({2, 4}, {0.1F, 0.4F, 0.3F, 0.2F, 9, -1, -2, -3});
    EXPECT_EQ(judged({"topk", {}}, outputs, class_labels({1, 1})), 0.5);
    EXPECT_EQ(judged({"topk", {{"k", 2}}}, outputs, class_labels({2, 1})), 1.0);
    EXPECT_EQ(judged({"topk", {{"k", 2}}}, outputs, class_labels({3, 3})), 0.0);
    EXPECT_EQ(judged({"topk", {{"k", 9}}}, outputs, class_labels({3, 3})), 1.0);
}

TEST(TopK, PrefersTheLowerClassAmongEqualScores) {
    const auto outputs = floats({1, 3}, {1, 1, 1});
    EXPECT_EQ(judged({"topk", {}}, outputs, class_labels({0})), 1.0);
    EXPECT_EQ(judged({"topk", {}}, outputs, class_labels({2})), 0.0);
    EXPECT_EQ(judged({"topk", {{"k", 2}}}, outputs, class_labels({1})), 1.0);
}

TEST(TopK, TakesClassesAndOneHotLabelsAndTrailingOnes) {
    const std::vector<Tensor> ids{Tensor::of<int64_t>({3}, {4, 2, 7})};
    EXPECT_NEAR(judged({"topk", {}}, ids, class_labels({4, 2, 1})), 2.0 / 3, 1e-15);
    EXPECT_NE(error_of([&] {
                  judged({"topk", {{"k", 5}}}, ids, class_labels({4, 2, 1}));
              }).find("needs scores"),
              std::string::npos);
    const std::vector<Label> one_hot{{{"label", Tensor::of<float>({3}, {0, 0, 1})}}};
    EXPECT_EQ(judged({"topk", {}}, floats({1, 3, 1, 1}, {1, 2, 3}), one_hot), 1.0);
}

TEST(TopK, RemembersEachSampleAndForgetsOnReset) {
    const auto metric = make_metric({"topk", {}});
    metric->update(floats({2, 2}, {1, 0, 1, 0}), class_labels({0, 1}));
    metric->update(floats({1, 2}, {0, 1}), class_labels({1}));
    EXPECT_EQ(metric->per_sample(), (std::vector<double>{1, 0, 1}));
    EXPECT_EQ(metric->bounds(), (std::pair<double, double>{0, 1}));
    metric->reset();
    EXPECT_EQ(error_of([&] { (void)metric->result(); }), "the metric saw no samples, so it has no result");
}

TEST(TopK, SaysWhatIsWrong) {
    const auto outputs = floats({2, 2}, {1, 0, 1, std::nanf("")});
    EXPECT_EQ(error_of([&] {
                  judged({"topk", {}}, outputs, class_labels({0, 1}));
              }),
              "output 0 is NaN for sample 1 (place 1 of its 2 numbers)");
    const auto good = floats({2, 2}, {1, 0, 1, 0});
    EXPECT_EQ(
        error_of([&] {
            judged({"topk", {}}, good, class_labels({0, 2}));
        }),
        "'label' of sample 1 is 2, the model tells classes 0 to 1 apart | when labels count from 1, the "
        "post-process transform LabelShift subtracts 1");
    EXPECT_EQ(error_of([&] {
                  judged({"topk", {}}, good, class_labels({0}));
              }),
              "output 0 has the shape 2x2, expected 1 samples along its first axis");
    EXPECT_EQ(error_of([&] {
                  judged({"topk", {}}, floats({1, 2, 2}, {1, 0, 1, 0}), class_labels({0}));
              }),
              "topk: output 0 has the shape 1x2x2, expected [samples, classes]");
    EXPECT_EQ(error_of([&] {
                  judged({"topk", {}}, good, {class_label(0), Label{}});
              }),
              "sample 1 has no 'label', it has no label at all | "
              "say what is true of the samples: --labels FILE, or labels of the dataset");
    EXPECT_EQ(error_of([&] {
                  judged({"topk", {{"output", 3}}}, good, class_labels({0, 1}));
              }),
              "the metric judges output 3, the model has 1 outputs");
    EXPECT_EQ(error_of([] {
                  make_metric({"topk", {{"kk", 1}}});
              }),
              "there is no key 'kk' | did you mean 'k'?");
    EXPECT_EQ(error_of([] {
                  make_metric({"topk", {{"k", 0}}});
              }),
              "expected how many classes count, at least 1, found 0");
}

TEST(TopK, KeepsNothingOfABatchThatFailed) {
    const auto metric = make_metric({"topk", {}});
    EXPECT_NE(error_of([&] {
                  metric->update(floats({2, 2}, {1, 0, 1, 0}), class_labels({0, 5}));
              }),
              "no error");
    EXPECT_TRUE(metric->per_sample().empty());
}

TEST(Metrics, UnknownNamesGetTheNearest) {
    EXPECT_EQ(
        error_of([] {
            make_metric({"acuracy", Settings().at("a.yaml:3: evaluation.accuracy.metric")});
        }),
        "a.yaml:3: evaluation.accuracy.metric: there is no metric 'acuracy' | did you mean 'Accuracy'?");
    EXPECT_NE(error_of([] { make_metric({"perplexity", {}}); }).find("there are topk, "), std::string::npos);
}

TEST(Accuracy, ChoosesTheKindByTheShapes) {
    EXPECT_EQ(judged({"Accuracy", {}}, floats({2, 3}, {0, 2, 1, 5, 1, 1}), class_labels({1, 2})), 0.5);
    // One number per sample: a probability, or a class.
    EXPECT_EQ(judged({"Accuracy", {}}, floats({3, 1}, {0.2F, 0.5F, 0.9F}), class_labels({0, 1, 0})), 2.0 / 3);
    EXPECT_EQ(judged({"Accuracy", {{"threshold", 0}}}, floats({2}, {-3, 3}), class_labels({0, 1})), 1.0);
    const std::vector<Tensor> ids{Tensor::of<int32_t>({2}, {7, 3})};
    EXPECT_EQ(judged({"Accuracy", {}}, ids, class_labels({7, 4})), 0.5);
}

TEST(Accuracy, CountsEveryLabelOrAllTogether) {
    const auto outputs = floats({2, 2}, {0.9F, 0.1F, 0.7F, 0.7F});
    const std::vector<Label> labels{{{"label", Tensor::of<int64_t>({2}, {1, 0})}},
                                    {{"label", Tensor::of<int64_t>({2}, {1, 0})}}};
    EXPECT_EQ(judged({"Accuracy", {}}, outputs, labels), 0.75);
    EXPECT_EQ(judged({"Accuracy", {{"exact_match", true}}}, outputs, labels), 0.5);
}

}  // namespace kilter::classification_test
