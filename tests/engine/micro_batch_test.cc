#include "engine/micro_batch.h"

#include "engine/ref/executor.h"
#include "engine/testing.h"

namespace kilter::engine::micro_batch_test {

using testing::expect_close;
using testing::random;

constexpr int kThreads = 2;

Attributes same_padding() {
    Attributes attributes;
    attributes.set("pads", std::vector<int64_t>{1, 1, 1, 1});
    return attributes;
}

// A network whose activations at batch 6 exceed the caches; `mix` adds an operator across samples.
Graph network(bool mix) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 8, 96, 96}});
    Value* w = graph.add_constant(random(DType::f32, {24, 8, 3, 3}, 1));
    Value* y = graph.add("Relu", {graph.add("Conv", {x, w}, same_padding(), "conv")});
    if (mix) {
        Attributes keep;
        keep.set("keepdims", int64_t{1});
        Value* mean = graph.add("ReduceMean", {y, graph.add_constant(testing::ints({0}))}, keep);
        y = graph.add("Sub", {y, mean});
    }
    Value* pooled = graph.add("GlobalAveragePool", {y});
    Attributes flat;
    flat.set("axis", int64_t{1});
    graph.add_output(graph.add("Flatten", {pooled}, flat), "features");
    graph.add_output(y, "map");
    infer_types(graph);
    return graph;
}

Slicing chosen(const Graph& graph, int64_t batch) {
    const Specialized known = specialize(graph, {ValueType(DType::f32, {batch, 8, 96, 96})});
    return micro_batch(graph, known, kThreads);
}

TEST(MicroBatch, SlicesALargeBatchOfIndependentSamples) {
    for (const int64_t batch : {6, 9}) {
        EXPECT_LT(chosen(network(false), batch).size, batch);
        EXPECT_EQ(batch % chosen(network(false), batch).size, 0);
    }
}

TEST(MicroBatch, GivesEveryThreadItsOwnSamplesWhenTheyDivide) {
    EXPECT_EQ(chosen(network(false), 6).lanes, kThreads);
    EXPECT_EQ(chosen(network(false), 9).lanes, 1);
    EXPECT_EQ((6 / chosen(network(false), 6).size) % kThreads, 0);
}

TEST(MicroBatch, KeepsSmallBatchesWhole) { EXPECT_EQ(chosen(network(false), 1).size, 1); }

TEST(MicroBatch, KeepsSamplesTogetherThatSeeEachOther) { EXPECT_EQ(chosen(network(true), 6).size, 6); }

TEST(MicroBatch, KeepsTheFunction) {
    for (const auto& [mix, batch] : {std::pair{false, 6}, {true, 6}, {false, 9}, {false, 4}}) {
        Graph graph = network(mix);
        const Tensor x = random(DType::f32, {batch, 8, 96, 96}, 2);
        const std::vector<Tensor> wanted = ref::run(graph, {x});
        EngineOptions options;
        options.threads = kThreads;
        Stage stage(graph.clone(), options, std::make_shared<WeightStore>());
        expect_close(stage.run({x}), wanted);
        std::vector<StepReport> reports;
        stage.profile({x}, 1, reports);
        EXPECT_FALSE(reports.empty());
    }
}

}  // namespace kilter::engine::micro_batch_test
