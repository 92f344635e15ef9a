// Symbols: what is read, and files that are damaged or hostile.
#include "formats/mxnet/symbol.h"

#include <gtest/gtest.h>

#include "kilter/base/error.h"

namespace kilter::mxnet::symbol_test {

constexpr std::string_view kSmall = R"json({
  "nodes": [
    {"op": "null", "name": "data", "inputs": []},
    {"op": "null", "name": "w", "attrs": {"__shape__": "(4, 3)"
}
, "inputs" : []
},
    {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "4", "no_bias": "True"}, "inputs": [[0, 0, 0], [1, 0, 0]]}
  ],
  "arg_nodes": [0, 1], "node_row_ptr": [0, 1, 2, 3], "heads": [[2, 0, 0]],
  "attrs": {
    "mxnet_version" : [ "int", 10901 ]
}
})json";

std::string error_of(std::string_view json) {
    try {
        parse_symbol(json);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(MxnetSymbol, ReadsNodesAndComesBackAsItWasWritten) {
    const Symbol symbol = parse_symbol(kSmall);
    ASSERT_EQ(symbol.nodes.size(), 3U);
    EXPECT_EQ(symbol.nodes[2].get("num_hidden"), "4");
    EXPECT_EQ(symbol.nodes[2].inputs, (std::vector<Entry>{{0, 0}, {1, 0}}));
    EXPECT_EQ(symbol.version, 10901);
    const std::string text = to_json(symbol);
    EXPECT_EQ(to_json(parse_symbol(text)), text);
}

TEST(MxnetSymbol, ReadsWhatOlderVersionsWrote) {
    const Symbol symbol = parse_symbol(R"({"nodes": [
        {"op": "null", "param": {}, "name": "x", "inputs": [], "backward_source_id": -1},
        {"op": "Activation", "param": {"act_type": "relu"}, "name": "a", "inputs": [[0, 0]], "attr": {"lr_mult": "1"}}],
        "arg_nodes": [0], "heads": [[1, 0]]})");
    EXPECT_EQ(symbol.nodes[1].get("act_type"), "relu");
    EXPECT_EQ(symbol.nodes[1].get("lr_mult"), "1");
}

TEST(MxnetSymbol, OperatorsOfOneNameGetNumbers) {
    const Symbol symbol = parse_symbol(R"({"nodes": [
        {"op": "null", "name": "a", "inputs": []},
        {"op": "relu", "name": "a", "inputs": [[0, 0]]},
        {"op": "relu", "name": "a", "inputs": [[1, 0]]},
        {"op": "null", "name": "a", "inputs": []},
        {"op": "relu", "name": "a_1", "inputs": [[2, 0]]},
        {"op": "relu", "name": "a", "inputs": [[4, 0]]}],
        "heads": [[5, 0]]})");
    std::vector<std::string> names;
    for (const SymbolNode& node : symbol.nodes) names.push_back(node.name);
    EXPECT_EQ(names, (std::vector<std::string>{"a", "a", "a_2", "a", "a_1", "a_3"}));
}

TEST(MxnetSymbol, EveryTruncationIsAnError) {
    for (size_t length = 0; length < kSmall.size(); ++length)
        EXPECT_THROW(parse_symbol(kSmall.substr(0, length)), Error) << length;
}

TEST(MxnetSymbol, CyclesAndDanglingInputsAreErrors) {
    const auto with_inputs = [](std::string_view inputs) {
        return error_of(std::string(R"({"nodes": [{"op": "null", "name": "x", "inputs": []},
            {"op": "relu", "name": "a", "inputs": )") +
                        std::string(inputs) + R"(}], "heads": [[1, 0, 0]]})");
    };
    EXPECT_EQ(with_inputs("[[0, 0, 0]]"), "no error");
    EXPECT_NE(with_inputs("[[1, 0, 0]]").find("node 1 'a'"), std::string::npos);  // itself
    EXPECT_NE(with_inputs("[[7, 0, 0]]").find("names node 7"), std::string::npos);
    EXPECT_NE(with_inputs("[[-1, 0, 0]]").find("not negative"), std::string::npos);
    EXPECT_NE(with_inputs("[[0]]").find("[node, output]"), std::string::npos);
    EXPECT_NE(with_inputs("{}").find("must be a list"), std::string::npos);
}

TEST(MxnetSymbol, OtherJsonIsAnError) {
    EXPECT_NE(error_of("[]").find("JSON object"), std::string::npos);
    EXPECT_NE(error_of("{}").find("\"nodes\""), std::string::npos);
    EXPECT_NE(error_of(R"({"nodes": [], "heads": []})").find("no outputs"), std::string::npos);
    EXPECT_NE(error_of(R"({"nodes": [3], "heads": []})").find("node 0 must be an object"), std::string::npos);
    EXPECT_NE(error_of(R"({"nodes": [{"op": 3, "name": "x", "inputs": []}], "heads": [[0, 0]]})")
                  .find("op must be text"),
              std::string::npos);
}

TEST(MxnetSymbol, DeepNestingIsAnErrorNotACrash) {
    EXPECT_NE(error_of(std::string(1'000'000, '[')).find("deep"), std::string::npos);
    std::string nested = R"({"nodes": [{"op": "null", "name": "x", "inputs": []}], "heads": [[0, 0, 0]]})";
    for (int i = 0; i < 100; ++i)
        nested = R"({"nodes": [{"op": "null", "name": "x", "inputs": [], "subgraphs": [)" + nested +
                 R"(]}], "heads": [[0, 0, 0]]})";
    EXPECT_NE(error_of(nested).find("deep"), std::string::npos);
}

}  // namespace kilter::mxnet::symbol_test
