#include "kilter/calibration/calibrate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "base/fail.h"
#include "engine/ref/executor.h"
#include "engine/testing.h"

namespace kilter::calibrate_test {

using engine::testing::random;
using Samples = std::vector<std::vector<Tensor>>;

Program program_of(Graph graph, EngineOptions options = {.threads = 1}) {
    Model model;
    model.graph = std::move(graph);
    model.opsets = {{"", kCanonicalOpset}};
    return Program(std::move(model), options);
}

// conv -> relu -> conv + residual -> relu -> mean over the plane -> product
Graph network() {
    Graph graph;
    Attributes padding;
    padding.set("pads", std::vector<int64_t>{1, 1, 1, 1});
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 3, Dim("height"), Dim("width")}});
    const auto weights = [&](const Shape& shape, unsigned seed) {
        return graph.add_constant(random(DType::f32, shape, seed, -0.3, 0.3));
    };
    Value* a = graph.add("Relu", {graph.add("Conv", {x, weights({24, 3, 3, 3}, 1)}, padding)});
    Value* b = graph.add("Conv", {a, weights({24, 24, 3, 3}, 2)}, padding);
    Value* y = graph.add("Relu", {graph.add("Add", {b, a})});
    Attributes flat;
    flat.set("axis", int64_t{1});
    Value* features = graph.add("Flatten", {graph.add("GlobalAveragePool", {y})}, flat);
    graph.add_output(graph.add("MatMul", {features, weights({24, 5}, 3)}), "scores");
    infer_types(graph);
    return graph;
}

Samples samples(int count, const Shape& shape = {1, 3, 20, 17}) {
    Samples made;
    for (int i = 0; i < count; ++i)
        made.push_back({random(DType::f32, shape, static_cast<unsigned>(i), -1.0 - i, 1.0 + 0.1 * i)});
    return made;
}

std::string error_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

// Every float value of the optimized graph as the reference computes it, against what the engine's statistics say.
void expect_matches_reference(const Program& program, const Samples& given, const Stats& stats,
                              double tolerance = 1e-5) {
    struct Seen {
        double low = 1e30, high = -1e30, sum = 0;
        int64_t count = 0;
        std::vector<double> lows, highs, sums;
    };
    std::map<std::string, Seen> wanted;
    const auto look = [&](const Value& value, const Tensor& tensor) {
        if (tensor.dtype() != DType::f32 || value.is_constant()) return;
        Seen& seen = wanted[value.name()];
        const ValueStats* found = stats.find(value.name());
        ASSERT_NE(found, nullptr) << value.name();
        const int axis = found->channel_axis;
        const int64_t channels = axis < 0 ? 1 : tensor.dim(axis);
        int64_t inner = 1;
        for (int i = axis + 1; i < tensor.rank() && axis >= 0; ++i) inner *= tensor.dim(i);
        seen.lows.resize(static_cast<size_t>(channels), 1e30);
        seen.highs.resize(static_cast<size_t>(channels), -1e30);
        seen.sums.resize(static_cast<size_t>(channels));
        const auto data = tensor.as<float>();
        for (size_t i = 0; i < data.size(); ++i) {
            const auto c = static_cast<size_t>(static_cast<int64_t>(i) / inner % channels);
            const double x = static_cast<double>(data[i]);
            seen.low = std::min(seen.low, x), seen.high = std::max(seen.high, x), seen.sum += x;
            seen.lows[c] = std::min(seen.lows[c], x), seen.highs[c] = std::max(seen.highs[c], x);
            seen.sums[c] += x;
        }
        seen.count += tensor.size();
    };
    for (const std::vector<Tensor>& inputs : given) {
        for (size_t i = 0; i < inputs.size(); ++i) look(*program.graph().inputs()[i], inputs[i]);
        ref::run(program.graph(), inputs, look);
    }
    EXPECT_EQ(stats.values.size(), wanted.size());
    for (const auto& [name, seen] : wanted) {
        SCOPED_TRACE(name);
        const ValueStats& found = *stats.find(name);
        const double scale = tolerance * std::max({std::fabs(seen.low), std::fabs(seen.high), 1e-3});
        const auto count = static_cast<double>(seen.count);
        EXPECT_EQ(found.count, seen.count);
        EXPECT_NEAR(found.min, seen.low, scale);
        EXPECT_NEAR(found.max, seen.high, scale);
        EXPECT_NEAR(found.mean, seen.sum / count, scale);
        EXPECT_LE(found.histogram.count(), found.count);
        EXPECT_GE(std::ldexp(Histogram::kBins, found.histogram.exponent()), found.max);
        if (found.channel_axis < 0) continue;
        ASSERT_EQ(found.channel_min.size(), seen.lows.size());
        for (size_t c = 0; c < seen.lows.size(); ++c) {
            EXPECT_NEAR(found.channel_min[c], seen.lows[c], scale);
            EXPECT_NEAR(found.channel_max[c], seen.highs[c], scale);
            EXPECT_NEAR(found.channel_mean[c], seen.sums[c] * static_cast<double>(seen.lows.size()) / count,
                        scale);
        }
    }
}

TEST(Calibrate, SeesEveryActivationOfTheOptimizedGraph) {
    const Program program = program_of(network());
    const Samples given = samples(4);
    const Stats stats = calibrate(program, given);
    EXPECT_EQ(stats.samples, 4);
    expect_matches_reference(program, given, stats);
    EXPECT_EQ(stats.find("x")->channel_axis, 1);
    EXPECT_EQ(stats.find("x")->channel_min.size(), 3);
    EXPECT_EQ(stats.find("x")->histogram.count(), stats.find("x")->count);
    EXPECT_EQ(stats.find("no such value"), nullptr);
}

TEST(Calibrate, SeesWhatRunsInSlicesOfABatch) {
    for (const int threads : {1, 2}) {
        const Program program = program_of(network(), {.threads = threads});
        const Samples given = samples(2, {16, 3, 64, 64});
        expect_matches_reference(program, given, calibrate(program, given));
    }
}

TEST(Calibrate, SeesTheReferenceKernelsToo) {
    const Program program = program_of(network(), {.threads = 1, .reference = true});
    const Samples given = samples(2);
    expect_matches_reference(program, given, calibrate(program, given));
}

// The number of positive elements is known only at run time; what follows is planned then.
TEST(Calibrate, SeesWhatIsPlannedAtRunTime) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("n")}});
    Value* half = graph.add("Mul", {x, graph.add_constant(Tensor::scalar(0.5F))});
    Value* positive = graph.add("Greater", {half, graph.add_constant(Tensor::scalar(0.0F))});
    Value* chosen = graph.add("Compress", {half, positive});
    graph.add_output(graph.add("Exp", {graph.add("Sqrt", {chosen})}), "y");
    infer_types(graph);
    const Program program = program_of(std::move(graph));
    const Samples given{{random(DType::f32, {100}, 1)}, {random(DType::f32, {37}, 2)}};
    expect_matches_reference(program, given, calibrate(program, given));
}

TEST(Calibrate, KnowsTheChannelsOfMatrixProducts) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), Dim("sequence"), 12}});
    Value* h = graph.add("MatMul", {x, graph.add_constant(random(DType::f32, {12, 20}, 1))});
    Value* g = graph.add("Gelu", {h});
    graph.add_output(graph.add("MatMul", {g, graph.add_constant(random(DType::f32, {20, 7}, 2))}), "y");
    infer_types(graph);
    const Program program = program_of(std::move(graph));
    const Samples given{{random(DType::f32, {2, 5, 12}, 1)}, {random(DType::f32, {1, 9, 12}, 2)}};
    const Stats stats = calibrate(program, given);
    expect_matches_reference(program, given, stats);
    EXPECT_EQ(stats.find("x")->channel_axis, 2);
    EXPECT_EQ(stats.find("x")->channel_min.size(), 12);
}

TEST(Calibrate, DoesNotDependOnTheOrderOfSamples) {
    const Program program = program_of(network());
    Samples given = samples(12);
    const Stats first = calibrate(program, given);
    std::mt19937 order(1);
    for (int round = 0; round < 3; ++round) {
        std::ranges::shuffle(given, order);
        EXPECT_EQ(calibrate(program, given), first);
    }
}

TEST(Calibrate, InstancesGiveTheSameBitsAsOne) {
    const Program program = program_of(network());
    const Samples given = samples(12, {2, 3, 70, 64});
    const Stats serial = calibrate(program, given, {.instances = 1});
    for (const int instances : {2, 5}) EXPECT_EQ(calibrate(program, given, {.instances = instances}), serial);
}

TEST(Calibrate, ThreadsGiveTheSameStatisticsOfTheSameValues) {
    const Samples given = samples(3, {1, 3, 200, 190});
    const Stats one = calibrate(program_of(network(), {.threads = 1}), given);
    const Stats two = calibrate(program_of(network(), {.threads = 2}), given);
    EXPECT_EQ(*one.find("x"), *two.find("x"));
}

TEST(Calibrate, HistogramsCountAnEvenShareOfLargeActivations) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 32, 64, 64}});
    graph.add_output(graph.add("Relu", {x}), "y");
    infer_types(graph);
    const Program program = program_of(std::move(graph));
    const Stats stats = calibrate(program, samples(3, {2, 32, 64, 64}));
    const ValueStats& seen = *stats.find("x");
    EXPECT_EQ(seen.count, 3 * 2 * 32 * 64 * 64);
    EXPECT_GE(seen.histogram.count(), 3 * 2 * 16384);
    EXPECT_LT(seen.histogram.count(), seen.count / 2);
    // Uniform between -1 - i and 1 + 0.1 i: the share below zero is known.
    int64_t negative = 0;
    for (const int64_t count : seen.histogram.negative()) negative += count;
    const double wanted = (1 / 2.0 + 2 / 3.1 + 3 / 4.2) / 3;
    EXPECT_NEAR(static_cast<double>(negative) / static_cast<double>(seen.histogram.count()), wanted, 0.01);
}

TEST(Calibrate, PartsMergeExactly) {
    const Program program = program_of(network());
    const Samples given = samples(9);
    const Stats whole = calibrate(program, given);
    Stats forward, backward;
    std::vector<Stats> parts;
    for (size_t i = 0; i < given.size(); i += 3)
        parts.push_back(calibrate(program, Samples{given[i], given[i + 1], given[i + 2]}));
    for (const Stats& part : parts) forward.merge(part);
    std::ranges::reverse(parts);
    for (const Stats& part : parts) backward.merge(part);
    EXPECT_EQ(forward, whole);
    EXPECT_EQ(backward, whole);
}

TEST(Calibrate, TellsItsProgress) {
    const Program program = program_of(network());
    std::vector<int64_t> told;
    calibrate(program, samples(5), {.instances = 2, .progress = [&](int64_t done) { told.push_back(done); }});
    EXPECT_EQ(told, (std::vector<int64_t>{1, 2, 3, 4, 5}));
}

TEST(Calibrate, NamesTheSampleAndTheInputThatIsNotFinite) {
    const Program program = program_of(network());
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
        Samples given = samples(6);
        for (const size_t index : {size_t{3}, size_t{5}}) {
            given[index][0] = given[index][0].clone();
            given[index][0].as_mutable<float>()[777] = bad;
        }
        for (const int instances : {1, 3}) {
            const std::string message =
                error_of([&] { calibrate(program, given, {.instances = instances}); });
            EXPECT_NE(message.find("calibration sample 3: input 'x' contains"), std::string::npos) << message;
        }
    }
}

TEST(Calibrate, NamesTheOperatorWhoseResultFirstIsNotFinite) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {4}});
    Value* y = graph.add("Log", {x}, {}, "the logarithm");
    graph.add_output(graph.add("Sigmoid", {graph.add("Abs", {y})}), "y");
    infer_types(graph);
    const Program program = program_of(std::move(graph));
    const std::string message = error_of([&] {
        calibrate(program,
                  Samples{{Tensor::of<float>({4}, {1, 2, 3, 4})}, {Tensor::of<float>({4}, {1, -1, 3, 4})}});
    });
    EXPECT_NE(message.find("calibration sample 1: operator 'the logarithm' (Log)"), std::string::npos)
        << message;
    EXPECT_NE(message.find("NaN"), std::string::npos) << message;
}

TEST(Calibrate, LeavesOutWhatIsInfiniteOnPurpose) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {4}});
    Value* zero = graph.add_constant(Tensor::scalar(0.0F));
    Value* never = graph.add_constant(Tensor::scalar(-std::numeric_limits<float>::infinity()));
    Value* mask = graph.add("Where", {graph.add("Greater", {x, zero}), zero, never}, {}, "mask");
    Value* y = graph.add("Softmax", {graph.add("Add", {x, mask}, {}, "masked")}, {}, "softmax");
    graph.add_output(y, "y");
    infer_types(graph);
    const std::string masked = graph.nodes()[1]->output(0)->name();
    const Program program = program_of(std::move(graph));
    const Stats stats = calibrate(program, Samples{{Tensor::of<float>({4}, {1, -2, 3, 4})}});
    EXPECT_EQ(stats.find(masked), nullptr);
    ASSERT_NE(stats.find("x"), nullptr);
    EXPECT_EQ(stats.find("x")->min, -2.0F);
    EXPECT_EQ(stats.values.size(), 2U);  // the input and the probabilities
}

TEST(Calibrate, TakesHugeNumbersThatAreFinite) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 500}});
    graph.add_output(graph.add("Sigmoid", {x}), "y");
    infer_types(graph);
    const Program program = program_of(std::move(graph));
    const float largest = std::numeric_limits<float>::max();
    const Stats stats = calibrate(program, Samples{{Tensor::filled(DType::f32, {2, 500}, largest)}});
    EXPECT_EQ(stats.find("x")->mean, static_cast<double>(largest));
    EXPECT_EQ(stats.find("x")->max, largest);
}

TEST(Calibrate, WantsSamplesThatFit) {
    const Program program = program_of(network());
    EXPECT_EQ(error_of([&] { calibrate(program, Samples{}); }), "there are no calibration samples");
    const std::string message = error_of([&] { calibrate(program, samples(1, {1, 4, 8, 8})); });
    EXPECT_NE(message.find("calibration sample 0: input 'x' takes shape"), std::string::npos) << message;
    EXPECT_NE(error_of([&] {
                  calibrate(program, []() -> std::optional<std::vector<Tensor>> { fail("no such image"); });
              }).find("no such image"),
              std::string::npos);
}

TEST(Calibrate, ScalarsAndSingleElementsAndEmptyTensorsAreFine) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {}});
    Value* y = graph.add_input("y", {DType::f32, {Dim("n"), 1}});
    graph.add_output(graph.add("Relu", {x}), "a");
    graph.add_output(graph.add("Relu", {y}), "b");
    infer_types(graph);
    const Program program = program_of(std::move(graph));
    const Stats stats = calibrate(program, Samples{{Tensor::scalar(-3.0F), Tensor::of<float>({1, 1}, {7})},
                                                   {Tensor::scalar(2.0F), Tensor(DType::f32, {0, 1})}});
    EXPECT_EQ(stats.find("x")->count, 2);
    EXPECT_EQ(stats.find("x")->min, -3);
    EXPECT_EQ(stats.find("x")->channel_axis, -1);
    EXPECT_EQ(stats.find("y")->count, 1);
    EXPECT_EQ(stats.find("y")->max, 7);
}

class StatsFile : public ::testing::Test {
  protected:
    StatsFile() : path_(std::filesystem::path(::testing::TempDir()) / "stats_file_test.stats") {
        const Program program = program_of(network());
        stats_ = calibrate(program, samples(3));
        stats_.save(path_);
        std::ifstream file(path_, std::ios::binary);
        bytes_.assign(std::istreambuf_iterator<char>(file), {});
    }
    ~StatsFile() override { std::filesystem::remove(path_); }

    std::string load(const std::string& bytes) {
        std::ofstream(path_, std::ios::binary) << bytes;
        return error_of([&] { Stats::load(path_); });
    }

    std::filesystem::path path_;
    Stats stats_;
    std::string bytes_;
};

TEST_F(StatsFile, ComesBackBitForBit) { EXPECT_EQ(Stats::load(path_), stats_); }

TEST_F(StatsFile, SaysWhichFileIsCutOffOrDamaged) {
    for (size_t size = 0; size < bytes_.size(); size = size * 5 / 4 + 1) {
        const std::string message = load(bytes_.substr(0, size));
        EXPECT_EQ(message.find(path_.string()), 0) << message;
    }
    for (size_t at = 0; at < bytes_.size(); at = at * 5 / 4 + 1) {
        std::string damaged = bytes_;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
        const std::string message = load(damaged);
        EXPECT_EQ(message.find(path_.string()), 0) << message;
    }
    EXPECT_NE(load(bytes_ + "x").find("damaged"), std::string::npos);
    EXPECT_NE(load("some text").find("not a file of calibration statistics"), std::string::npos);
    std::string newer = bytes_;
    newer[18] = 2;
    EXPECT_NE(load(newer).find("version 2"), std::string::npos);
}

TEST_F(StatsFile, StatisticsOfOtherModelsDoNotMerge) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 5, 8, 8}});
    graph.add_output(graph.add("GlobalAveragePool", {x}), "y");
    infer_types(graph);
    Stats other = calibrate(program_of(std::move(graph)), samples(1, {1, 5, 8, 8}));
    const std::string message = error_of([&] { other.merge(stats_); });
    EXPECT_NE(message.find("not the same model"), std::string::npos) << message;
}

}  // namespace kilter::calibrate_test
