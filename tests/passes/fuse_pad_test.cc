#include "passes/pass_test.h"

namespace kilter::fuse_pad_test {

using namespace testing;

TEST(FusePad, MovesZerosIntoTheConvolution) {
    for (const bool own : {false, true}) {
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, {2, 3, 4, 5}});
        Value* padded = graph.add("Pad", {x, ints(graph, {0, 0, 1, 0, 0, 0, 2, 3})}, {}, "pad");
        const Attributes attributes = own ? ints_attribute("pads", {1, 1, 0, 2}) : Attributes{};
        graph.add_output(graph.add("Conv", {padded, weights(graph, {4, 3, 3, 2}, 1)}, attributes, "conv"),
                         "y");
        expect_keeps_function(graph, fuse_pad);
        ASSERT_EQ(graph.nodes().size(), 1U);
        EXPECT_EQ(graph.nodes()[0]->origins, std::vector<std::string>{"pad"});
    }
}

TEST(FusePad, UnderstandsAxesAndOtherReaders) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3, 6}});
    Value* padded = graph.add("Pad", {x, ints(graph, {1, 2}), scalar(graph, 0), ints(graph, {-1})});
    graph.add_output(graph.add("Conv", {padded, weights(graph, {4, 3, 3}, 1)},
                               attribute<std::string>("auto_pad", "VALID")),
                     "y");
    graph.add_output(padded, "padded");
    expect_keeps_function(graph, fuse_pad);
    EXPECT_EQ(graph.count("Pad"), 1U);
}

TEST(FusePad, MovesZerosIntoAnAverage) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 2, 5, 5}});
    Value* padded = graph.add("Pad", {x, ints(graph, {0, 0, 1, 1, 0, 0, 1, 0})});
    graph.add_output(graph.add("AveragePool", {padded}, ints_attribute("kernel_shape", {3, 2})), "y");
    expect_keeps_function(graph, fuse_pad);
    EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST(FusePad, LeavesWhatIsNotZeroPaddingOfSpace) {
    const auto build = [](const std::vector<int64_t>& pads, float fill, const std::string& mode,
                          int64_t channels) {
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, {2, 3, 6}});
        Value* padded =
            graph.add("Pad", {x, ints(graph, pads), scalar(graph, fill)}, attribute("mode", mode));
        graph.add_output(graph.add("Conv", {padded, weights(graph, {4, channels, 3}, 1)}), "y");
        return graph;
    };
    Graph filled = build({0, 0, 1, 0, 0, 1}, 0.5F, "constant", 3);
    expect_untouched(filled, fuse_pad);
    Graph reflected = build({0, 0, 1, 0, 0, 1}, 0, "reflect", 3);
    expect_untouched(reflected, fuse_pad);
    Graph channels = build({0, 1, 1, 0, 0, 1}, 0, "constant", 4);
    expect_untouched(channels, fuse_pad);
    Graph cropped = build({0, 0, -1, 0, 0, 1}, 0, "constant", 3);
    expect_untouched(cropped, fuse_pad);
}

}  // namespace kilter::fuse_pad_test
