#include "passes/pass_test.h"

#include <set>

namespace kilter::pass_manager_test {

using namespace testing;

bool run_optimize(Graph& graph) {
    const std::string before = print(graph);
    optimize(graph);
    return print(graph) != before;
}

Value* linear(Graph& graph, Value* x, int64_t from, int64_t to, unsigned seed) {
    return graph.add("Add", {weights(graph, {to}, seed + 100),
                             graph.add("MatMul", {x, weights(graph, {from, to}, seed)})});
}

Value* layer_norm(Graph& graph, Value* x, int64_t width, unsigned seed) {
    Value* centered = graph.add("Sub", {x, graph.add("ReduceMean", {x, ints(graph, {-1})})});
    Value* variance =
        graph.add("ReduceMean", {graph.add("Pow", {centered, scalar(graph, 2)}), ints(graph, {-1})});
    Value* deviation = graph.add("Sqrt", {graph.add("Add", {variance, scalar(graph, 1e-5F)})});
    Value* normalized =
        graph.add("Mul", {graph.add("Div", {centered, deviation}), weights(graph, {width}, seed)});
    return graph.add("Add", {normalized, weights(graph, {width}, seed + 1)});
}

// [batch, length, 8] → [batch, 2, length, 4], with the shape computed as exporters do
Value* split_heads(Graph& graph, Value* x, std::vector<int64_t> perm) {
    Value* shape = graph.add("Shape", {x});
    const auto part = [&](int64_t axis) {
        Value* number = graph.add("Gather", {shape, graph.add_constant(Tensor::scalar<int64_t>(axis))});
        return graph.add("Unsqueeze", {number, ints(graph, {0})});
    };
    Value* target = graph.add("Concat", {part(0), part(1), ints(graph, {2}), ints(graph, {4})},
                              attribute<int64_t>("axis", 0));
    return graph.add("Transpose", {graph.add("Reshape", {x, target})},
                     ints_attribute("perm", std::move(perm)));
}

TEST(Optimize, FusesATransformerBlock) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), Dim("length"), 8}});
    Value* mask = graph.add_input("mask", {DType::f32, {Dim("batch"), 1, 1, Dim("length")}});
    Value* q = split_heads(graph, linear(graph, x, 8, 8, 1), {0, 2, 1, 3});
    Value* k = split_heads(graph, linear(graph, x, 8, 8, 2), {0, 2, 3, 1});
    Value* v = split_heads(graph, linear(graph, x, 8, 8, 3), {0, 2, 1, 3});
    Value* scores = graph.add("Div", {graph.add("MatMul", {q, k}), scalar(graph, 2)});
    Value* probabilities = graph.add("Softmax", {graph.add("Add", {scores, mask})});
    Value* context = graph.add("Transpose", {graph.add("MatMul", {probabilities, v})},
                               ints_attribute("perm", {0, 2, 1, 3}));
    Value* joined = graph.add("Reshape", {context, ints(graph, {0, 0, 8})});
    Value* h = layer_norm(graph, graph.add("Add", {linear(graph, joined, 8, 8, 4), x}), 8, 20);
    Value* inner = linear(graph, h, 8, 16, 5);
    Value* erf = graph.add("Erf", {graph.add("Div", {inner, scalar(graph, static_cast<float>(M_SQRT2))})});
    Value* gelu = graph.add(
        "Mul", {graph.add("Mul", {inner, graph.add("Add", {erf, scalar(graph, 1)})}), scalar(graph, 0.5F)});
    graph.add_output(layer_norm(graph, graph.add("Add", {linear(graph, gelu, 16, 8, 6), h}), 8, 30), "y");
    expect_keeps_function(graph, run_optimize);
    EXPECT_EQ(graph.count("Attention", kKilterDomain), 1U);
    EXPECT_EQ(graph.count("LayerNormalization"), 2U);
    EXPECT_EQ(graph.count("MatMul", kKilterDomain), 6U) << print(graph);
    std::set<std::string> left;
    for (const auto& node : graph.nodes()) left.insert(node->op());
    EXPECT_EQ(left,
              (std::set<std::string>{"Attention", "LayerNormalization", "MatMul", "Reshape", "Transpose"}));
}

TEST(Optimize, FusesAResidualBlock) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 3, 8, 8}});
    const auto conv_bn = [&](Value* v, int64_t from, int64_t to, unsigned seed) {
        Value* y = graph.add("Conv",
                             {graph.add("Pad", {v, ints(graph, {0, 0, 1, 1, 0, 0, 1, 1})}),
                              weights(graph, {to, from, 3, 3}, seed)},
                             {}, "conv" + std::to_string(seed));
        return graph.add("BatchNormalization",
                         {y, weights(graph, {to}, seed + 1), weights(graph, {to}, seed + 2),
                          weights(graph, {to}, seed + 3), weights(graph, {to}, seed + 4, 0.1F, 1)});
    };
    Value* shortcut = conv_bn(x, 3, 4, 10);
    Value* main = conv_bn(graph.add("Relu", {conv_bn(x, 3, 4, 20)}), 4, 4, 30);
    Value* sum = graph.add("Relu", {graph.add("Add", {main, shortcut})});
    graph.add_output(sum, "features");
    Value* pooled = graph.add("Flatten", {graph.add("GlobalAveragePool", {sum})});
    graph.add_output(graph.add("Gemm", {pooled, weights(graph, {5, 4}, 40), weights(graph, {5}, 41)},
                               attribute<int64_t>("transB", 1)),
                     "y");
    expect_keeps_function(graph, run_optimize);
    EXPECT_EQ(graph.nodes().size(), 6U) << print(graph);
    EXPECT_EQ(graph.count("Conv", kKilterDomain), 2U);
}

TEST(Optimize, ListsEveryPassWithASummary) {
    std::set<std::string_view> names;
    for (const Pass& pass : passes()) {
        EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
        EXPECT_FALSE(pass.summary.empty()) << pass.name;
    }
}

}  // namespace kilter::pass_manager_test
