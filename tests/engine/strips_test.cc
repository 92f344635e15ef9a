#include "engine/strips.h"

#include "engine/native/simd.h"
#include "engine/ref/executor.h"
#include "engine/stage.h"
#include "engine/testing.h"
#include "kilter/passes/passes.h"

namespace kilter::engine::strips_test {

using testing::expect_close;
using testing::random;

struct Block {
    int64_t batch, channels, wide, height, width, kernel, stride, dilation;
    bool expand, residual;
};

std::ostream& operator<<(std::ostream& out, const Block& block) {
    return out << block.batch << "x" << block.channels << "x" << block.height << "x" << block.width
               << " wide " << block.wide << " kernel " << block.kernel << " stride " << block.stride;
}

Attributes geometry(int64_t stride, int64_t pad, int64_t dilation, int64_t groups) {
    Attributes attributes;
    attributes.set("strides", std::vector<int64_t>{stride, stride});
    attributes.set("pads", std::vector<int64_t>{pad, pad, pad, pad});
    attributes.set("dilations", std::vector<int64_t>{dilation, dilation});
    attributes.set("group", groups);
    return attributes;
}

// An inverted residual block as networks have it: 1x1 to many channels, depthwise, 1x1 to few.
Graph inverted_residual(const Block& block) {
    Graph graph;
    const int64_t in = block.expand ? block.channels : block.wide;
    Value* x = graph.add_input("x", ValueType(DType::f32, {block.batch, in, block.height, block.width}));
    Value* six = graph.add_constant(Tensor::scalar(6.0F));
    Value* zero = graph.add_constant(Tensor::scalar(0.0F));
    Value* y = x;
    if (block.expand) {
        Value* w = graph.add_constant(random(DType::f32, {block.wide, in, 1, 1}, 1));
        Value* b = graph.add_constant(random(DType::f32, {block.wide}, 2));
        y = graph.add("Clip", {graph.add("Conv", {y, w, b}, geometry(1, 0, 1, 1), "expand"), zero, six});
    }
    const int64_t pad = (block.kernel - 1) * block.dilation / 2;
    Value* w = graph.add_constant(random(DType::f32, {block.wide, 1, block.kernel, block.kernel}, 3));
    y = graph.add("Clip", {graph.add("Conv", {y, w}, geometry(block.stride, pad, block.dilation, block.wide),
                                     "depthwise"),
                           zero, six});
    Value* v = graph.add_constant(random(DType::f32, {in, block.wide, 1, 1}, 4));
    y = graph.add("Conv", {y, v}, geometry(1, 0, 1, 1), "project");
    if (block.residual) y = graph.add("Add", {y, x});
    graph.add_output(y, "y");
    infer_types(graph);
    return graph;
}

TEST(Strips, KeepTheFunction) {
    if (isa() != Isa::avx512) GTEST_SKIP() << "strips need channels-last kernels";
    for (const Block& block :
         {Block{1, 16, 96, 80, 80, 3, 1, 1, true, true}, Block{1, 24, 144, 61, 57, 3, 2, 1, true, false},
          Block{3, 16, 96, 67, 64, 5, 1, 1, true, true}, Block{1, 16, 96, 90, 41, 3, 1, 2, true, true},
          Block{1, 16, 32, 112, 112, 3, 1, 1, false, false}}) {
        Graph graph = inverted_residual(block);
        const Tensor x = random(DType::f32, graph.inputs()[0]->type.static_shape(), 5);
        const std::vector<Tensor> wanted = ref::run(graph, {x});
        optimize(graph);
        EngineOptions options;
        options.threads = 2;
        Stage stage(std::move(graph), options, std::make_shared<WeightStore>());
        expect_close(stage.run({x}), wanted);
        std::vector<StepReport> reports;
        stage.profile({x}, 1, reports);
        EXPECT_TRUE(std::ranges::any_of(reports, [](const StepReport& step) { return step.op == "Strips"; }))
            << block;
        expect_close(stage.run({x}), wanted);  // the memory of the first run is used again
    }
}

// Depthwise and 1x1 in turns, without wide activations: the end of one chain could be the beginning of the next.
TEST(Strips, ChainsDoNotShareConvolutions) {
    if (isa() != Isa::avx512) GTEST_SKIP() << "strips need channels-last kernels";
    Graph graph;
    Value* y = graph.add_input("x", ValueType(DType::f32, {1, 32, 112, 112}));
    for (int block = 0; block < 3; ++block) {
        Value* w = graph.add_constant(random(DType::f32, {32, 1, 3, 3}, 2 * block));
        y = graph.add("Relu", {graph.add("Conv", {y, w}, geometry(1, 1, 1, 32))});
        Value* v = graph.add_constant(random(DType::f32, {32, 32, 1, 1}, 2 * block + 1));
        y = graph.add("Relu", {graph.add("Conv", {y, v}, geometry(1, 0, 1, 1))});
    }
    graph.add_output(y, "y");
    infer_types(graph);
    const Tensor x = random(DType::f32, {1, 32, 112, 112}, 9);
    const std::vector<Tensor> wanted = ref::run(graph, {x});
    optimize(graph);
    EngineOptions options;
    options.threads = 2;
    expect_close(Stage(std::move(graph), options, std::make_shared<WeightStore>()).run({x}), wanted);
}

TEST(Strips, LeaveSmallAndSharedActivationsAlone) {
    Graph small = inverted_residual({1, 16, 96, 14, 14, 3, 1, 1, true, true});
    Graph shared = inverted_residual({1, 16, 96, 80, 80, 3, 1, 1, true, true});
    for (const auto& node : shared.nodes())
        if (node->name == "project") shared.add_output(node->input(0), "inner");
    for (Graph* graph : {&small, &shared}) {
        optimize(*graph);
        const Specialized known = specialize(*graph, {graph->inputs()[0]->type});
        EXPECT_TRUE(find_strip_chains(*graph, known, 2).empty());
        EXPECT_TRUE(find_strip_chains(*graph, known, 1).empty());
    }
}

}  // namespace kilter::engine::strips_test
