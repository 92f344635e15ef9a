#include "ops/post_ops.h"
#include "passes/pass_test.h"

namespace kilter::expand_fused_test {

using namespace testing;

Value* fused_conv(Graph& graph, Value* x, const Shape& weights_shape, int64_t group,
                  const std::string& name) {
    Attributes attributes;
    attributes.set("group", group);
    attributes.set("pads", std::vector<int64_t>{1, 1, 1, 1});
    return graph.add("Conv", {x, weights(graph, weights_shape, 11), weights(graph, {weights_shape[0]}, 12)},
                     std::move(attributes), name, kKilterDomain);
}

bool has_own_operators(const Graph& graph) {
    return std::ranges::any_of(graph.nodes(),
                               [](const auto& node) { return node->domain() == kKilterDomain; });
}

TEST(ExpandFused, SpellsOutEveryUnaryPostOp) {
    for (const std::string_view name :
         {"relu", "leaky_relu", "clip", "sigmoid", "tanh", "gelu_erf", "gelu_tanh", "swish", "elu", "mish",
          "exp", "hard_swish", "hard_sigmoid", "abs", "square", "linear"}) {
        SCOPED_TRACE(name);
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, {2, 3, 5, 4}});
        Value* y = fused_conv(graph, x, {4, 3, 3, 3}, 1, "conv");
        append_post_op(graph, *y->producer(), name, 0.25F, 0.75F);
        graph.add_output(y, "y");
        expect_keeps_function(graph, expand_fused);
        EXPECT_FALSE(has_own_operators(graph));
        EXPECT_EQ(find_node(graph, "Conv")->name, "conv");
    }
}

TEST(ExpandFused, SpellsOutErfc) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3}});
    graph.add_output(graph.add("Erfc", {x}, {}, "erfc", kKilterDomain), "y");
    expect_keeps_function(graph, expand_fused);
    EXPECT_FALSE(has_own_operators(graph));
}

TEST(ExpandFused, SpellsOutBinaryPostOpsInOrder) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 4, 5, 4}});
    Value* y = fused_conv(graph, x, {4, 1, 3, 3}, 4, "conv");
    append_post_op(graph, *y->producer(), "relu");
    append_post_op(graph, *y->producer(), "add", 0, 0, x);
    append_post_op(graph, *y->producer(), "mul", 0, 0, weights(graph, {1, 4, 1, 1}, 5));
    append_post_op(graph, *y->producer(), "clip", -1.0F, 6.0F);
    graph.add_output(y, "y");
    expect_keeps_function(graph, expand_fused);
    EXPECT_FALSE(has_own_operators(graph));
}

TEST(ExpandFused, LeavesOutAClipLimitThatCutsNothing) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 3, 4, 4}});
    Value* y = fused_conv(graph, x, {4, 3, 3, 3}, 1, "conv");
    append_post_op(graph, *y->producer(), "clip", 0.0F, std::numeric_limits<float>::max());
    graph.add_output(y, "y");
    expect_keeps_function(graph, expand_fused);
    EXPECT_EQ(find_node(graph, "Clip")->input(2), nullptr);
}

TEST(ExpandFused, ExpandsProductsOfAllForms) {
    for (const int rank : {2, 3})
        for (const bool trans_a : {false, true})
            for (const bool trans_b : {false, true})
                for (const bool bias : {false, true})
                    for (const float alpha : {1.0F, 0.5F}) {
                        SCOPED_TRACE(::testing::Message() << rank << trans_a << trans_b << bias << alpha);
                        Graph graph;
                        Dims dims = rank == 2 ? Dims{} : Dims{2};
                        dims.emplace_back(trans_a ? 5 : 4);
                        dims.emplace_back(trans_a ? 4 : 5);
                        Value* a = graph.add_input("a", {DType::f32, dims});
                        Value* b = weights(graph, trans_b ? Shape{3, 5} : Shape{5, 3}, 2);
                        Attributes attributes;
                        attributes.set("trans_a", int64_t{trans_a});
                        attributes.set("trans_b", int64_t{trans_b});
                        attributes.set("alpha", alpha);
                        std::vector<Value*> inputs{a, b};
                        if (bias) inputs.push_back(weights(graph, {3}, 3));
                        graph.add_output(
                            graph.add("MatMul", inputs, std::move(attributes), "fc", kKilterDomain), "y");
                        expect_keeps_function(graph, expand_fused);
                        EXPECT_FALSE(has_own_operators(graph));
                        if (rank == 3 && !trans_a) {
                            EXPECT_EQ(find_node(graph, "Transpose"), nullptr);
                        }
                    }
}

TEST(ExpandFused, ExpandsAttentionWithMask) {
    for (const bool k_transposed : {false, true}) {
        Graph graph;
        Value* q = graph.add_input("q", {DType::f32, {2, 3, 5, 4}});
        Value* k = graph.add_input("k", {DType::f32, k_transposed ? Dims{2, 3, 4, 7} : Dims{2, 3, 7, 4}});
        Value* v = graph.add_input("v", {DType::f32, {2, 3, 7, 6}});
        Value* mask = graph.add_input("mask", {DType::f32, {2, 1, 1, 7}});
        Attributes attributes;
        attributes.set("scale", 0.5F);
        attributes.set("k_transposed", int64_t{k_transposed});
        graph.add_output(
            graph.add("Attention", {q, k, v, mask}, std::move(attributes), "attention", kKilterDomain), "y");
        expect_keeps_function(graph, expand_fused);
        EXPECT_FALSE(has_own_operators(graph));
    }
}

TEST(ExpandFused, SpellsOutActivationsOfNewOpsets) {
    for (const std::string_view op : {"Gelu", "Swish", "Mish"}) {
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, {2, 3}});
        graph.add_output(graph.add(op, {x}, {}, "act"), "y");
        expect_keeps_function(graph, expand_fused);
        EXPECT_EQ(graph.count(op), 0U);
    }
}

TEST(ExpandFused, LeavesStandardOperatorsAlone) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 3, 4, 4}});
    graph.add_output(graph.add("Relu", {x}), "y");
    expect_untouched(graph, expand_fused);
}

}  // namespace kilter::expand_fused_test
