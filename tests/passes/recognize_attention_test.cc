#include "passes/pass_test.h"

namespace kilter::recognize_attention_test {

using namespace testing;

struct Spelling {
    Graph graph;
    Value* q = graph.add_input("q", {DType::f32, {Dim("batch"), 2, 3, 5}});
    Value* k = graph.add_input("k", {DType::f32, {Dim("batch"), 2, 4, 5}});
    Value* v = graph.add_input("v", {DType::f32, {Dim("batch"), 2, 4, 6}});

    Value* transposed(Value* value, std::vector<int64_t> perm) {
        return graph.add("Transpose", {value}, ints_attribute("perm", std::move(perm)));
    }
    Value* scores(Value* a, Value* b) { return graph.add("MatMul", {a, b}, {}, "scores"); }
    Value* scaled(Value* value, float factor) { return graph.add("Mul", {value, scalar(graph, factor)}); }
    void finish(Value* logits) {
        graph.add_output(graph.add("MatMul", {graph.add("Softmax", {logits}), v}, {}, "context"), "y");
    }
    void expect_recognized(size_t nodes = 1) {
        expect_keeps_function(graph, recognize_attention);
        EXPECT_EQ(graph.nodes().size(), nodes) << print(graph);
        EXPECT_EQ(graph.count("Attention", kKilterDomain), 1U);
    }
};

TEST(RecognizeAttention, KnowsThePlainForms) {
    Spelling divided;
    divided.finish(divided.graph.add(
        "Div",
        {divided.scores(divided.q, divided.transposed(divided.k, {0, 1, 3, 2})), scalar(divided.graph, 2)}));
    divided.expect_recognized();
    EXPECT_EQ(divided.graph.nodes()[0]->name, "context");
    EXPECT_EQ(divided.graph.nodes()[0]->attributes.get_float("scale"), 0.5F);
    EXPECT_EQ(divided.graph.nodes()[0]->origins.front(), "scores");
    Spelling bare;
    bare.finish(bare.scores(bare.q, bare.transposed(bare.k, {0, 1, 3, 2})));
    bare.expect_recognized();
}

TEST(RecognizeAttention, KnowsMasksOfEveryShape) {
    for (const Dims& mask : {Dims{Dim("batch"), 1, 1, 4}, Dims{3, 4}, Dims{1, 2, 3, 1}, Dims{}}) {
        for (const bool first : {false, true}) {
            Spelling s;
            Value* m = s.graph.add_input("mask", {DType::f32, mask});
            Value* scores = s.scaled(s.scores(s.q, s.transposed(s.k, {0, 1, 3, 2})), 0.4F);
            s.finish(first ? s.graph.add("Add", {m, scores}) : s.graph.add("Add", {scores, m}));
            s.expect_recognized();
        }
    }
}

TEST(RecognizeAttention, KnowsFactorsOnTheOperands) {
    Spelling s;
    s.finish(s.scores(s.scaled(s.q, 0.6F), s.transposed(s.scaled(s.k, 0.6F), {0, 1, 3, 2})));
    s.expect_recognized();
    Spelling t;
    t.finish(t.scores(t.scaled(t.q, 0.6F), t.scaled(t.transposed(t.k, {0, 1, 3, 2}), 0.5F)));
    t.expect_recognized();
}

TEST(RecognizeAttention, KnowsKeysInOtherLayouts) {
    Spelling rows;
    Value* k = rows.graph.add_input("k_rows", {DType::f32, {Dim("batch"), 4, 2, 5}});
    rows.finish(rows.scaled(rows.scores(rows.q, rows.transposed(k, {0, 2, 3, 1})), 0.4F));
    rows.expect_recognized(2);
    EXPECT_EQ(find_node(rows.graph, "Attention", kKilterDomain)->attributes.get_int("k_transposed"), 0);
    Spelling columns;
    k = columns.graph.add_input("k_columns", {DType::f32, {Dim("batch"), 2, 5, 4}});
    columns.finish(columns.scores(columns.q, k));
    columns.expect_recognized();
    EXPECT_EQ(columns.graph.nodes()[0]->attributes.get_int("k_transposed"), 1);
}

TEST(RecognizeAttention, KnowsLoweredProducts) {
    Spelling s;
    s.finish(s.scaled(s.scores(s.q, s.transposed(s.k, {0, 1, 3, 2})), 0.4F));
    infer_types(s.graph);
    ASSERT_TRUE(lower_matmul(s.graph));
    ASSERT_TRUE(fold_scale_shift(s.graph));
    s.expect_recognized();
}

TEST(RecognizeAttention, KnowsMasksThatSelect) {
    for (const float fill : {-INFINITY, -3.4e38F}) {
        for (const bool where_true : {false, true}) {
            Spelling s;
            Value* keys = s.graph.add_constant(
                Tensor::of<bool>({1, 1, 1, 4}, {where_true, !where_true, where_true, !where_true}));
            Value* bias = s.graph.add_input("bias", {DType::f32, {3, 4}});
            Value* scores = s.scaled(s.scores(s.q, s.transposed(s.k, {0, 1, 3, 2})), 0.4F);
            Value* number = scalar(s.graph, fill);
            Value* selected = where_true ? s.graph.add("Where", {keys, number, scores})
                                         : s.graph.add("Where", {keys, scores, number});
            s.finish(s.graph.add("Add", {selected, bias}));
            s.expect_recognized(3);
        }
    }
}

TEST(RecognizeAttention, KnowsThreeAxes) {
    for (const std::vector<int64_t>& perm : {std::vector<int64_t>{0, 2, 1}, std::vector<int64_t>{1, 2, 0}}) {
        Graph graph;
        Value* q = graph.add_input("q", {DType::f32, {6, 3, 5}});
        Value* k = graph.add_input("k", {DType::f32, perm[0] == 0 ? Dims{6, 4, 5} : Dims{4, 6, 5}});
        Value* v = graph.add_input("v", {DType::f32, {6, 4, 2}});
        Value* mask = graph.add_input("mask", {DType::f32, {6, 1, 4}});
        Value* scores = graph.add("MatMul", {q, graph.add("Transpose", {k}, ints_attribute("perm", perm))});
        Value* logits = graph.add("Add", {graph.add("Mul", {scores, scalar(graph, 0.3F)}), mask});
        graph.add_output(graph.add("MatMul", {graph.add("Softmax", {logits}), v}), "y");
        expect_keeps_function(graph, recognize_attention);
        EXPECT_EQ(graph.count("Attention", kKilterDomain), 1U);
        EXPECT_EQ(graph.count("Softmax") + graph.count("MatMul"), 0U);
    }
}

TEST(RecognizeAttention, LeavesSelectionsThatDoNotVanish) {
    Spelling s;
    Value* keys = s.graph.add_constant(Tensor::of<bool>({4}, {true, false, true, false}));
    s.finish(
        s.graph.add("Where", {keys, scalar(s.graph, -5), s.scores(s.q, s.transposed(s.k, {0, 1, 3, 2}))}));
    expect_untouched(s.graph, recognize_attention);
}

TEST(RecognizeAttention, LeavesFetchedProbabilities) {
    Spelling s;
    Value* probabilities = s.graph.add("Softmax", {s.scores(s.q, s.transposed(s.k, {0, 1, 3, 2}))});
    s.graph.add_output(s.graph.add("MatMul", {probabilities, s.v}), "y");
    s.graph.add_output(probabilities, "probabilities");
    expect_untouched(s.graph, recognize_attention);
}

TEST(RecognizeAttention, LeavesOtherAxesAndBroadcastHeads) {
    Spelling axis;
    Value* scores = axis.scores(axis.q, axis.transposed(axis.k, {0, 1, 3, 2}));
    axis.graph.add_output(
        axis.graph.add("MatMul",
                       {axis.graph.add("Softmax", {scores}, attribute<int64_t>("axis", 2)), axis.v}),
        "y");
    expect_untouched(axis.graph, recognize_attention);
    Spelling heads;
    Value* shared = heads.graph.add_input("shared", {DType::f32, {Dim("batch"), 1, 5, 4}});
    heads.finish(heads.scores(heads.q, shared));
    expect_untouched(heads.graph, recognize_attention);
    Spelling mask;
    Value* large = mask.graph.add_input("large", {DType::f32, {1, Dim("batch"), 2, 3, 4}});
    mask.graph.add_output(
        mask.graph.add(
            "Softmax",
            {mask.graph.add("Add", {mask.scores(mask.q, mask.transposed(mask.k, {0, 1, 3, 2})), large})}),
        "y");
    expect_untouched(mask.graph, recognize_attention);
}

}  // namespace kilter::recognize_attention_test
