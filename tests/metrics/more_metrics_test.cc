// All other metrics on cases worked out by hand: edges, ties, nothing at all, and what is wrong said in words.
// tests/python/test_metrics.py compares them with scikit-learn, pycocotools and published figures.
#include <cmath>

#include <gtest/gtest.h>

#include "metrics/squad_text.h"
#include "metrics/testing.h"

namespace kilter::more_metrics_test {

std::vector<Tensor> texts(const std::vector<std::string>& values) {
    return {Tensor::strings({static_cast<int64_t>(values.size())}, values)};
}

TEST(F1, CountsOneClassOrAll) {
    const std::vector<Tensor> said{Tensor::of<int64_t>({6}, {1, 1, 0, 0, 1, 0})};
    // Class 1: 2 hits, 1 false, 1 missed; class 0: 2 hits, 1 false, 1 missed.
    const auto labels = class_labels({1, 1, 0, 0, 0, 1});
    EXPECT_NEAR(judged({"F1", {}}, said, labels), 4.0 / 6, 1e-15);
    EXPECT_NEAR(judged({"F1", {{"average", "macro"}}}, said, labels), 4.0 / 6, 1e-15);
    EXPECT_EQ(judged({"F1", {}}, said, class_labels({0, 0, 0, 0, 0, 0})), 0.0);
}

TEST(F1, WithoutPositivesIsZero) {
    const std::vector<Tensor> said{Tensor::of<int64_t>({2}, {0, 0})};
    EXPECT_EQ(judged({"F1", {}}, said, class_labels({0, 0})), 0.0);
}

TEST(F1, OfManyClassesWantsAnAverage) {
    const std::vector<Tensor> said{Tensor::of<int64_t>({3}, {0, 1, 2})};
    EXPECT_EQ(error_of([&] {
                  judged({"F1", {}}, said, class_labels({0, 1, 2}));
              }),
              "F1 of one class, but there are 3 classes | set 'average' to macro, micro or weighted");
    EXPECT_EQ(error_of([] {
                  make_metric({"F1", {{"average", "mean"}}});
              }),
              "expected one of binary, macro, micro, weighted, found 'mean'");
}

TEST(Roc, SharesEqualScoresAndNeedsBothClasses) {
    EXPECT_EQ(judged({"ROC", {}}, floats({4}, {1, 1, 1, 1}), class_labels({0, 1, 0, 1})), 0.5);
    EXPECT_EQ(judged({"ROC", {}}, floats({4, 1}, {1, 2, 3, 4}), class_labels({0, 0, 1, 1})), 1.0);
    EXPECT_EQ(judged({"ROC", {}}, floats({4}, {1, 2, 2, 3}), class_labels({0, 0, 1, 1})), 0.875);
    EXPECT_EQ(error_of([] {
                  judged({"ROC", {}}, floats({2}, {1, 2}), class_labels({1, 1}));
              }),
              "ROC needs samples of both classes, all 2 are positive");
    EXPECT_NE(error_of([] {
                  judged({"ROC", {}}, floats({1, 3}, {1, 2, 3}), class_labels({1}));
              }),
              "no error");
}

TEST(Differences, AreMeansOverSamples) {
    const auto said = floats({2, 2}, {1, 2, 3, 4});
    const std::vector<Label> labels{{{"label", Tensor::of<float>({2}, {1, 0})}},
                                    {{"label", Tensor::of<float>({2}, {0, 4})}}};
    EXPECT_EQ(judged({"MSE", {}}, said, labels), (4.0 + 9.0) / 4);
    EXPECT_EQ(judged({"MAE", {}}, said, labels), 5.0 / 4);
    EXPECT_EQ(judged({"RMSE", {}}, said, labels), std::sqrt(13.0 / 4));
    const auto metric = make_metric({"MSE", {}});
    metric->update(said, labels);
    EXPECT_EQ(metric->per_sample(), (std::vector<double>{2, 4.5}));
    EXPECT_EQ(metric->bounds().first, 0);
    EXPECT_TRUE(std::isinf(metric->bounds().second));
    EXPECT_TRUE(make_metric({"RMSE", {}})->per_sample().empty());
}

TEST(Differences, CompareWithTheReferenceWhenToldTo) {
    const auto metric = make_metric({"MAE", {{"compare_label", false}}});
    EXPECT_TRUE(metric->needs_reference());
    metric->update(floats({1, 1}, {3}), std::vector<Label>{{{"reference", Tensor::of<float>({1}, {1})}}});
    EXPECT_EQ(metric->result(), 2);
    EXPECT_EQ(error_of([&] {
                  metric->update(floats({1, 1}, {3}), class_labels({1}));
              }),
              "sample 1 has no 'reference', only label");
    EXPECT_EQ(error_of([] {
                  judged({"MSE", {}}, floats({1, 2}, {3, 4}), class_labels({1}));
              }),
              "'label' of sample 0 has 1 numbers, the output has 2");
}

TEST(Loss, TakesOneNumberForEachSampleOrForAll) {
    EXPECT_EQ(judged({"Loss", {}}, floats({2}, {1, 3}), {Label{}, Label{}}), 2.0);
    EXPECT_EQ(judged({"Loss", {}}, {Tensor::scalar<float>(5)}, {Label{}, Label{}}), 5.0);
    EXPECT_FALSE(make_metric({"Loss", {}})->higher_is_better());
    EXPECT_NE(error_of([] { judged({"Loss", {}}, floats({3}, {1, 2, 3}), {Label{}, Label{}}); }), "no error");
}

TEST(Glue, KnowsItsTasks) {
    const std::vector<Tensor> said{Tensor::of<int64_t>({4}, {1, 1, 0, 0})};
    const auto labels = class_labels({1, 0, 0, 0});
    EXPECT_NEAR(judged({"GLUE", {}}, said, labels), 2.0 / 3, 1e-15);
    EXPECT_EQ(judged({"GLUE", {{"task", "mrpc"}, {"score", "accuracy"}}}, said, labels), 0.75);
    EXPECT_EQ(judged({"GLUE", {{"task", "sst-2"}}}, said, labels), 0.75);
    EXPECT_EQ(judged({"GLUE", {{"task", "cola"}}}, said, class_labels({1, 1, 1, 1})), 0.0);
    EXPECT_NE(error_of([] { make_metric({"GLUE", {{"task", "squad"}}}); }), "no error");
    EXPECT_NE(error_of([] { make_metric({"GLUE", {{"task", "rte"}, {"score", "f1"}}}); }), "no error");
}

TEST(Miou, LeavesOutWhatIsNotJudged) {
    // Pixels: 0 right, 1 said for 0, 1 right, one outside.
    const std::vector<Tensor> said{Tensor::of<int64_t>({1, 2, 2}, {0, 1, 1, 0})};
    const std::vector<Label> labels{{{"label", Tensor::of<int64_t>({2, 2}, {0, 0, 1, 255})}}};
    EXPECT_EQ(judged({"mIOU", {{"num_classes", 3}}}, said, labels), 0.5);
    EXPECT_NE(error_of([&] { judged({"mIOU", {{"num_classes", 1}}}, said, labels); }), "no error");
}

// One image with boxes y0 x0 y1 x1.
Label boxes(const std::vector<float>& numbers, const std::vector<int64_t>& classes) {
    const auto n = static_cast<int64_t>(classes.size());
    return {{"boxes", Tensor::of<float>({n, 4}, numbers)}, {"classes", Tensor::of<int64_t>({n}, classes)}};
}

std::vector<Tensor> found(const std::vector<float>& numbers, const std::vector<float>& scores,
                          const std::vector<float>& classes) {
    const auto n = static_cast<int64_t>(scores.size());
    return {Tensor::of<float>({1, n, 4}, numbers), Tensor::of<float>({1, n}, scores),
            Tensor::of<float>({1, n}, classes)};
}

TEST(MeanAveragePrecision, OfAHandfulOfBoxes) {
    const Label truth = boxes({0, 0, 10, 10, 20, 20, 40, 40}, {1, 1});
    // A hit, a miss, a hit: precision 1 up to recall 1/2, then 2/3.
    const auto outputs = found({0, 0, 10, 10, 50, 50, 60, 60, 20, 20, 40, 40}, {0.9F, 0.8F, 0.7F}, {1, 1, 1});
    EXPECT_NEAR(judged({"mAP", {}}, outputs, {truth}), 0.5 + 0.5 * 2 / 3, 1e-12);
    EXPECT_NEAR(judged({"VOCmAP", {}}, outputs, {truth}), 0.5 + 0.5 * 2 / 3, 1e-12);
    EXPECT_NEAR(judged({"mAP", {{"map_points", 11}}}, outputs, {truth}), (6 + 5 * 2.0 / 3) / 11, 1e-12);
    EXPECT_NEAR(judged({"COCOmAP", {}}, outputs, {truth}), (51 + 50 * 2.0 / 3) / 101, 1e-12);
    EXPECT_NEAR(judged({"COCOmAP", {{"map_key", "AR@1"}}}, outputs, {truth}), 0.5, 1e-12);
}

TEST(MeanAveragePrecision, SuppressesWhereTheModelDoesNot) {
    const Label truth = boxes({0, 0, 10, 10, 20, 20, 40, 40}, {1, 2});
    // Two classes for each of three boxes; the second box is the first one, moved a little.
    const std::vector<Tensor> outputs{
        Tensor::of<float>({1, 3, 4}, {0, 0, 10, 10, 0, 1, 10, 11, 20, 20, 40, 40}),
        Tensor::of<float>({1, 3, 2}, {0.8F, 0, 0.9F, 0, 0.005F, 0.7F})};
    // The moved box is the better one: it counts where an overlap of 9/11 is enough, and the other one never.
    EXPECT_NEAR(judged({"mAP", {{"nms", 0.6}}}, outputs, {truth}), 1.0, 1e-12);
    EXPECT_NEAR(judged({"mAP", {{"nms", 0.6}, {"iou_thrs", 0.9}}}, outputs, {truth}), 0.5, 1e-12);
    EXPECT_NEAR(judged({"mAP", {{"nms", 0.9}, {"iou_thrs", 0.9}}}, outputs, {truth}), 0.75, 1e-12);
    const Settings::Map strict{{"iou", 0.9}, {"score", 0.85}};
    EXPECT_NEAR(judged({"mAP", {{"nms", Settings(strict)}}}, outputs, {truth}), 0.5, 1e-12);
    EXPECT_NE(error_of([&] { judged({"mAP", {{"nms", 1.5}}}, outputs, {truth}); }), "no error");
}

TEST(MeanAveragePrecision, CrowdsNeitherCountNorHurt) {
    Label truth = boxes({0, 0, 10, 10, 100, 100, 300, 300}, {1, 1});
    truth["iscrowd"] = Tensor::of<int64_t>({2}, {0, 1});
    const auto outputs =
        found({0, 0, 10, 10, 110, 110, 130, 130, 150, 150, 170, 170}, {0.5F, 0.9F, 0.8F}, {1, 1, 1});
    EXPECT_NEAR(judged({"COCOmAP", {}}, outputs, {truth}), 1.0, 1e-12);
}

TEST(MeanAveragePrecision, SaysWhatIsMissing) {
    const Label truth = boxes({0, 0, 10, 10}, {1});
    EXPECT_EQ(
        error_of([&] {
            judged({"mAP", {}}, floats({1, 4}, {0, 0, 1, 1}), {truth});
        }),
        "detections come in 3 outputs (boxes, scores, classes) or 4 (their number first), the model has 1 | "
        "'output_index_mapping' tells which output is which; with 'nms' boxes and scores of classes are enough");
    const auto outputs = found({0, 0, 1, 1}, {1}, {1});
    EXPECT_EQ(error_of([&] {
                  judged({"mAP", {}}, outputs, {truth});
              }),
              "sample 0 has no 'image_size', only boxes, classes");
    EXPECT_NEAR(judged({"mAP", {{"normalized", false}}}, outputs, {truth}), 0, 1e-12);
    EXPECT_EQ(error_of([&] {
                  judged({"mAP", {}}, outputs, {boxes({}, {})});
              }),
              "no true box counts, so there is no average precision");
    EXPECT_EQ(error_of([&] {
                  judged({"mAP", {}}, found({0, 0, 9, 9}, {std::nanf("")}, {1}), {truth});
              }),
              "scores are NaN for sample 0");
    EXPECT_NE(error_of([] { make_metric({"mAP", {{"iou_thrs", "0.5:0:0.9"}}}); }), "no error");
    EXPECT_NE(error_of([] { make_metric({"COCOmAP", {{"map_key", "mAP@.60IOU"}}}); }), "no error");
}

TEST(Squad, ComparesWordsWithoutArticlesAndPunctuation) {
    using metrics::answer_f1;
    using metrics::answer_match;
    EXPECT_EQ(metrics::answer_words("The  cat's, an_hour"), (std::vector<std::string>{"cats", "anhour"}));
    EXPECT_EQ(answer_match("The Cat!", "cat"), 1);
    EXPECT_NEAR(answer_f1("big black cat", "a black cat"), 0.8, 1e-15);
    EXPECT_EQ(answer_f1("", ""), 0);
    EXPECT_EQ(answer_f1("dog", "cat"), 0);
}

TEST(Squad, TakesTheBestPairInsideTheText) {
    const Label label{{"id", Tensor::strings({}, {"q"})},
                      {"answers", Tensor::strings({1}, {"blue sky"})},
                      {"context", Tensor::strings({}, {"a blue sky here"})},
                      {"token_start", Tensor::of<int64_t>({5}, {-1, 0, 2, 7, 11})},
                      {"token_end", Tensor::of<int64_t>({5}, {-1, 1, 6, 10, 15})}};
    // The best beginning is outside of the text, the best end before the second best.
    const std::vector<Tensor> logits{Tensor::of<float>({1, 5}, {9, 0, 5, 0, 0}),
                                     Tensor::of<float>({1, 5}, {9, 6, 0, 5, 0})};
    EXPECT_EQ(judged({"SquadF1", {}}, logits, {label}), 100);
    EXPECT_EQ(judged({"SquadF1", {{"score", "em"}}}, logits, {label}), 100);
    Label elsewhere = label;
    elsewhere["max_context"] = Tensor::of<int64_t>({5}, {0, 0, 0, 0, 0});
    EXPECT_EQ(judged({"SquadF1", {}}, logits, {elsewhere}), 0);                      // "empty"
    EXPECT_EQ(judged({"SquadF1", {{"max_answer_length", 1}}}, logits, {label}), 0);  // "a" sums up to 6
    EXPECT_EQ(judged({"SquadF1", {}}, texts({"Blue sky."}), {label}), 100);
}

TEST(Squad, SaysWhatDoesNotFit) {
    const Label label{{"answers", Tensor::strings({1}, {"x"})}, {"context", Tensor::strings({}, {"x"})}};
    const std::vector<Tensor> logits{Tensor::of<float>({1, 2}, {1, 0}), Tensor::of<float>({1, 3}, {1, 0, 0})};
    EXPECT_NE(error_of([&] {
                  judged({"SquadF1", {}}, logits, {label});
              }).find("have the shapes 1x2 and 1x3"),
              std::string::npos);
    EXPECT_NE(error_of([&] {
                  judged({"SquadF1", {}}, {logits[0], logits[0]}, {label});
              }).find("no 'token_start'"),
              std::string::npos);
    EXPECT_NE(error_of([&] {
                  judged({"SquadF1", {}}, {logits[0]}, {label});
              }).find("the model has 1 outputs"),
              std::string::npos);
}

TEST(Bleu, IsAHundredForEqualTextsAndZeroForShortOnes) {
    const std::vector<Label> label{{{"label", Tensor::strings({}, {"one two three, four five"})}}};
    EXPECT_NEAR(judged({"BLEU", {}}, texts({"one two three , four five"}), label), 100, 1e-12);
    EXPECT_EQ(judged({"BLEU", {}}, texts({"one two"}), label), 0);
    EXPECT_EQ(judged({"BLEU", {}}, texts({""}), label), 0);
    EXPECT_NE(error_of([&] {
                  judged({"BLEU", {}}, floats({1}, {1}), label);
              }).find("expected one text"),
              std::string::npos);
}

TEST(Metrics, AllSayWhenTheySawNothing) {
    for (const std::string& name : metric_names()) {
        const auto metric = make_metric({name, {}});
        EXPECT_EQ(error_of([&] { (void)metric->result(); }), "the metric saw no samples, so it has no result")
            << name;
        EXPECT_NE(error_of([&] { make_metric({name, {{"no_such_key", 1}}}); }), "no error") << name;
    }
}

}  // namespace kilter::more_metrics_test
