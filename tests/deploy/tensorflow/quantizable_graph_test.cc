// The stages of the way to an INT8 GraphDef: what is listed, observed and chosen. What is written is integer_graph_test.cc's.
#include <gtest/gtest.h>

#include "deploy/tensorflow/calibration_log.h"
#include "formats/tensorflow/graph_def.h"
#include "kilter/base/error.h"
#include "kilter/deploy/tensorflow.h"

namespace kilter::tensorflow {
namespace {

void add_convolution(TfGraph& graph, const std::string& name, const std::string& input) {
    std::vector<float> weights(4);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5F - 0.25F * static_cast<float>(i);
    graph.add_constant(name + "/w", Tensor::of<float>({1, 1, 2, 2}, weights));
    TfNode& node = graph.add(name, "Conv2D", {TfInput(input), TfInput::of(name + "/w")});
    TfList ones;
    ones.ints = {1, 1, 1, 1};
    node.attributes.set("T", kFloat);
    node.attributes.set("strides", ones);
    node.attributes.set("padding", "SAME");
}

// x → first → relu → second → y.
std::string two_convolutions() {
    TfGraph graph;
    TfNode& x = graph.add("x", "Placeholder");
    x.attributes.set("dtype", kFloat);
    x.attributes.set("shape", TfShape({-1, 2, 2, 2}));
    add_convolution(graph, "first", "x");
    graph.add("relu", "Relu", {"first"}).attributes.set("T", kFloat);
    add_convolution(graph, "second", "relu");
    graph.add("y", "Softmax", {"second"}).attributes.set("T", kFloat);
    return write_graph_def_bytes(graph);
}

QuantizableGraph prepared() {
    const std::string bytes = two_convolutions();
    return QuantizableGraph(std::as_bytes(std::span(bytes)));
}

SampleSource one_sample() {
    return [left = 1]() mutable -> std::optional<std::vector<Tensor>> {
        if (left-- == 0) return std::nullopt;
        return std::vector{Tensor::of<float>({1, 2, 2, 2}, {1, -2, 3, -4, 5, -6, 7, -8})};
    };
}

bool is_integer(const IntegerGraph& written, const std::string& name) {
    const auto found = std::ranges::find(written.operators, name, &ConvertedOperator::name);
    return found != written.operators.end() && found->integer;
}

TEST(QuantizableGraph, ListsWhatCanBeQuantizedAndWhatMustBeSeen) {
    const QuantizableGraph graph = prepared();
    EXPECT_EQ(graph.inputs(), std::vector<std::string>{"x"});
    EXPECT_EQ(graph.outputs(), std::vector<std::string>{"y"});
    ASSERT_EQ(graph.operators().size(), 2U);
    EXPECT_EQ(graph.operators()[0].name, "first");
    EXPECT_EQ(graph.operators()[0].fused, std::vector<std::string>{"relu"});
    EXPECT_EQ(graph.operators()[1].tensors, std::vector<std::string>{"relu"});
    EXPECT_EQ(graph.tensors(), (std::vector<std::string>{"relu", "x"}));
}

TEST(QuantizableGraph, TakesStatisticsFromWhoeverRunsIt) {
    const QuantizableGraph graph = prepared();
    const Stats stats = graph.observe(one_sample());
    EXPECT_EQ(stats.find("x")->min, -8);
    EXPECT_EQ(stats.find("x")->max, 7);
    Observations seen(graph.tensors());
    seen.add("x", Tensor::of<float>({1, 2, 2, 2}, {1, -2, 3, -4, 5, -6, 7, -8}));
    EXPECT_EQ(seen.stats().find("x")->histogram, stats.find("x")->histogram);
    EXPECT_EQ(seen.stats().find("relu"), nullptr);
    EXPECT_THROW(seen.add("first", Tensor::scalar<float>(1)), Error);
    EXPECT_THROW(seen.add("x", Tensor::scalar<int32_t>(1)), Error);
    EXPECT_THROW(graph.write({}, seen.stats()), Error) << "relu was never seen";
    EXPECT_TRUE(is_integer(graph.write({}, stats), "second"));
}

TEST(QuantizableGraph, ChoosesForEveryOperator) {
    const QuantizableGraph graph = prepared();
    const Stats stats = graph.observe(one_sample());
    const IntegerGraph written = graph.write({{"second", {.precision = Precision::f32}}}, stats);
    EXPECT_TRUE(is_integer(written, "first"));
    EXPECT_FALSE(is_integer(written, "second"));
    EXPECT_THROW(graph.write({{"third", {}}}, stats), Error);
    EXPECT_THROW(graph.write({{"second", {.bits = 9}}}, stats), Error);
}

TEST(QuantizableGraph, FindsTheOperatorsOfAPlan) {
    const QuantizableGraph graph = prepared();
    Plan plan;
    OperatorPlan fused;
    fused.name = "relu";
    fused.origins = {"first", "relu"};
    fused.weights.granularity = Granularity::per_tensor;
    fused.activation.algorithm = RangeAlgorithm::kl;
    plan.operators = {fused};
    const Choices choices = graph.choices(plan);
    EXPECT_EQ(choices.at("first").weights, Granularity::per_tensor);
    EXPECT_EQ(choices.at("first").range.algorithm, RangeAlgorithm::kl);
    EXPECT_EQ(choices.at("second").precision, Precision::f32) << "the plan does not know it";
    plan.operators[0].name = "other";
    plan.operators[0].origins.clear();
    EXPECT_THROW(graph.choices(plan), Error);
}

TEST(CalibrationLog, CountsBecomeTheHistogramOfTheValues) {
    // Three zeros, 1.5 twice and -1: bins of width 2^-12, of which the positive ones come second.
    Histogram expected;
    expected.add(std::vector<float>{0, 0, 0, 1.5F, 1.5F, -1});
    const Ranges extremes{{"x", {-1, 1.5}}};
    std::vector<int64_t> bins(size_t{2} * Histogram::kBins, 0);
    const auto place = [&](double value) {
        return static_cast<size_t>(std::floor(value / expected.width()) + Histogram::kBins);
    };
    bins[place(0)] += 3;
    bins[place(1.5)] += 2;
    bins[place(-1) - 1] += 1;  // bins of negative values hold their end that is far from zero
    std::string text = "noise ;x__print__;__counts:[3][";
    for (const int64_t count : bins) text += std::to_string(count) + " ";
    text.back() = ']';
    const Stats stats = parse_counts(text + "\n", extremes);
    ASSERT_NE(stats.find("x"), nullptr);
    EXPECT_EQ(stats.find("x")->histogram, expected);
    EXPECT_EQ(stats.find("x")->count, 6);
    EXPECT_EQ(stats.samples, 1);
    EXPECT_EQ(parse_counts(";x__print__;__counts:[3][1 2]", extremes).find("x"), nullptr) << "too few";
}

TEST(RangeRule, ReadsItsNames) {
    EXPECT_EQ(std::get<BatchRanges>(range_rule("Direct")), BatchRanges::direct);
    EXPECT_EQ(std::get<RangeOptions>(range_rule("KL")).algorithm, RangeAlgorithm::kl);
    EXPECT_EQ(std::get<RangeOptions>(range_rule("percentile:99.5")).percentile, 99.5);
    for (const char* wrong : {"", "percentile:", "percentile:0", "percentile:101", "klx"})
        EXPECT_THROW(range_rule(wrong), Error) << wrong;
}

}  // namespace
}  // namespace kilter::tensorflow
