#include "ops/post_ops.h"

#include "passes/pass_test.h"

namespace kilter::fuse_post_ops_test {

using namespace testing;

std::vector<std::string> names_of_post_ops(const Node& node) {
    std::vector<std::string> names;
    for (const PostOp& op : post_ops(node)) names.push_back(op.name);
    return names;
}

TEST(FusePostOps, FusesEveryActivation) {
    struct Case {
        std::string op;
        Attributes attributes;
        std::string post_op;
    };
    const std::vector<Case> cases{{"Relu", {}, "relu"},
                                  {"LeakyRelu", attribute("alpha", 0.1F), "leaky_relu"},
                                  {"Sigmoid", {}, "sigmoid"},
                                  {"Tanh", {}, "tanh"},
                                  {"Gelu", {}, "gelu_erf"},
                                  {"Gelu", attribute<std::string>("approximate", "tanh"), "gelu_tanh"},
                                  {"HardSwish", {}, "hard_swish"},
                                  {"HardSigmoid", {}, "hard_sigmoid"},
                                  {"Elu", {}, "elu"},
                                  {"Mish", {}, "mish"},
                                  {"Swish", {}, "swish"},
                                  {"Abs", {}, "abs"},
                                  {"Neg", {}, "linear"}};
    for (const Case& c : cases) {
        Graph graph;
        Value* x = graph.add_input("x", {DType::f32, {2, 3, 5}});
        Value* v = graph.add("Conv", {x, weights(graph, {4, 3, 2}, 1)}, {}, "conv");
        graph.add_output(graph.add(c.op, {v}, c.attributes, "activation"), "y");
        expect_keeps_function(graph, fuse_post_ops);
        ASSERT_EQ(graph.nodes().size(), 1U) << c.op;
        EXPECT_EQ(names_of_post_ops(*graph.nodes()[0]), std::vector<std::string>{c.post_op});
        EXPECT_EQ(graph.nodes()[0]->name, "conv");
        EXPECT_EQ(graph.nodes()[0]->origins, std::vector<std::string>{"activation"});
    }
}

TEST(FusePostOps, FusesALimitedClip) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3, 5, 5}});
    Value* v = graph.add("ConvTranspose", {x, weights(graph, {3, 4, 2, 2}, 1), weights(graph, {4}, 2)});
    graph.add_output(graph.add("Clip", {v, nullptr, scalar(graph, 0.3F)}), "y");
    expect_keeps_function(graph, fuse_post_ops);
    EXPECT_EQ(graph.count("ConvTranspose", kKilterDomain), 1U);
}

TEST(FusePostOps, TheLaterSummandTakesTheResidual) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 3, 6, 6}});
    Value* first = graph.add("Conv", {x, weights(graph, {4, 3, 1, 1}, 1)}, {}, "shortcut");
    Value* second = graph.add("Conv", {graph.add("Relu", {x}), weights(graph, {4, 3, 1, 1}, 2)}, {}, "main");
    Value* v = graph.add("Relu", {graph.add("Add", {first, second})});
    graph.add_output(v, "y");
    expect_keeps_function(graph, fuse_post_ops);
    const Node* fused = find_node(graph, "Conv", kKilterDomain);
    ASSERT_NE(fused, nullptr);
    EXPECT_EQ(fused->name, "main");
    EXPECT_EQ(names_of_post_ops(*fused), (std::vector<std::string>{"add", "relu"}));
    EXPECT_EQ(graph.count("Conv"), 1U);
}

TEST(FusePostOps, FusesAGateAndALongChain) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 4, 3, 3}});
    Value* gate = graph.add_input("gate", {DType::f32, {2, 4, 1, 1}});
    Value* v = graph.add("Conv", {x, weights(graph, {4, 4, 1, 1}, 1)});
    v = graph.add("Mul", {graph.add("Relu", {v}), gate});
    v = graph.add("Sub", {x, v});
    v = graph.add("Div", {graph.add("Add", {v, scalar(graph, 3)}), scalar(graph, 6)});
    v = graph.add("Max", {v, gate});
    graph.add_output(v, "y");
    expect_keeps_function(graph, fuse_post_ops);
    EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST(FusePostOps, FusesIntoProducts) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 5, 6}});
    Value* v =
        graph.add("MatMul", {x, weights(graph, {6, 6}, 1), weights(graph, {6}, 2)}, {}, {}, kKilterDomain);
    graph.add_output(graph.add("Gelu", {graph.add("Add", {x, v})}), "y");
    expect_keeps_function(graph, fuse_post_ops);
    EXPECT_EQ(graph.nodes().size(), 1U);
}

TEST(FusePostOps, LeavesOperandsThatEnlargeTheResult) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 3, 4, 4}});
    Value* large = graph.add_input("large", {DType::f32, {2, 4, 4, 4}});
    Value* unknown = graph.add_input("unknown", {DType::f32, {Dim(), 4, 4, 4}});
    Value* w = weights(graph, {4, 3, 1, 1}, 1);
    graph.add_output(graph.add("Add", {graph.add("Conv", {x, w}), large}), "a");
    graph.add_output(graph.add("Add", {graph.add("Conv", {x, w}), unknown}), "b");
    graph.add_output(graph.add("Div", {x, graph.add("Conv", {x, weights(graph, {3, 3, 1, 1}, 2)})}), "c");
    expect_untouched(graph, fuse_post_ops);
}

TEST(FusePostOps, LeavesValuesWithOtherReaders) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {1, 3, 4, 4}});
    Value* v = graph.add("Conv", {x, weights(graph, {4, 3, 1, 1}, 1)});
    graph.add_output(graph.add("Relu", {v}), "y");
    graph.add_output(v, "z");
    Value* twice = graph.add("Conv", {x, weights(graph, {4, 3, 1, 1}, 2)});
    graph.add_output(graph.add("Add", {twice, twice}), "doubled");
    expect_untouched(graph, fuse_post_ops);
}

}  // namespace kilter::fuse_post_ops_test
