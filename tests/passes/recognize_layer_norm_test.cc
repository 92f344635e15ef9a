#include "passes/pass_test.h"

namespace kilter::recognize_layer_norm_test {

using namespace testing;

struct Spelling {
    Graph graph;
    Value* x;
    std::vector<int64_t> axes;
    Value* mean;
    explicit Spelling(Dims dims, std::vector<int64_t> reduced = {-1})
        : x(graph.add_input("x", {DType::f32, std::move(dims)})), axes(std::move(reduced)), mean(reduce(x)) {}

    Value* reduce(Value* v) { return graph.add("ReduceMean", {v, ints(graph, axes)}); }
    Value* centered() { return graph.add("Sub", {x, mean}); }
    Value* deviation(bool power = true) {
        Value* d = centered();
        Value* square = power ? graph.add("Pow", {d, scalar(graph, 2)}) : graph.add("Mul", {d, d});
        return graph.add("Sqrt", {graph.add("Add", {reduce(square), scalar(graph, 1e-3F)})});
    }
    Value* reciprocal() { return graph.add("Reciprocal", {deviation(false)}); }
    Value* mul(Value* a, Value* b) { return graph.add("Mul", {a, b}); }
    Value* add(Value* a, Value* b) { return graph.add("Add", {a, b}); }
    void expect_recognized(Value* y) {
        graph.add_output(y, "y");
        expect_keeps_function(graph, recognize_layer_norm);
        ASSERT_EQ(graph.nodes().size(), 1U) << print(graph);
        EXPECT_TRUE(graph.nodes()[0]->is("LayerNormalization"));
    }
};

TEST(RecognizeLayerNorm, KnowsPyTorchsForm) {
    for (const Shape& shape : {Shape{6}, Shape{1, 1, 6}}) {
        Spelling s({2, Dim("length"), 6});
        Value* normalized = s.graph.add("Div", {s.centered(), s.deviation()});
        s.expect_recognized(s.add(s.mul(normalized, weights(s.graph, shape, 1)), weights(s.graph, shape, 2)));
    }
}

TEST(RecognizeLayerNorm, KnowsFormsWithoutGammaOrBeta) {
    Spelling bare({3, 5});
    bare.expect_recognized(bare.graph.add("Div", {bare.centered(), bare.deviation()}));
    Spelling scaled({3, 5});
    scaled.expect_recognized(
        scaled.mul(weights(scaled.graph, {5}, 1),
                   scaled.graph.add("Div", {scaled.centered(), scaled.deviation(false)})));
    Spelling shifted({3, 5});
    shifted.expect_recognized(
        shifted.add(weights(shifted.graph, {5}, 1), shifted.mul(shifted.reciprocal(), shifted.centered())));
}

TEST(RecognizeLayerNorm, KnowsTensorFlowsForm) {
    Spelling s({2, 4, 6});
    Value* scale = s.mul(s.reciprocal(), weights(s.graph, {6}, 1));
    Value* offset = s.graph.add("Sub", {weights(s.graph, {6}, 2), s.mul(s.mean, scale)});
    s.expect_recognized(s.add(s.mul(s.x, scale), offset));
}

TEST(RecognizeLayerNorm, KnowsSeveralTrailingAxes) {
    Spelling s({2, 3, 4}, {1, -1});
    Value* normalized = s.graph.add("Div", {s.centered(), s.deviation()});
    s.expect_recognized(s.add(s.mul(normalized, weights(s.graph, {3, 4}, 1)), weights(s.graph, {3, 4}, 2)));
}

TEST(RecognizeLayerNorm, StaysCorrectWhenInnerValuesAreFetched) {
    Spelling s({2, 6});
    Value* normalized = s.graph.add("Div", {s.centered(), s.deviation()});
    s.graph.add_output(s.mul(normalized, weights(s.graph, {6}, 1)), "y");
    s.graph.add_output(normalized, "normalized");
    s.graph.add_output(s.mean, "mean");
    expect_keeps_function(s.graph, recognize_layer_norm);
}

TEST(RecognizeLayerNorm, LeavesOtherAxes) {
    Spelling s({2, 3, 4}, {1});
    s.graph.add_output(s.graph.add("Div", {s.centered(), s.deviation()}), "y");
    expect_untouched(s.graph, recognize_layer_norm);
}

}  // namespace kilter::recognize_layer_norm_test
