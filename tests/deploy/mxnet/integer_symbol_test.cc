// Symbols with MXNet's integer operators: what is fused, what is excluded, where integers begin and end.
#include "deploy/mxnet/integer_symbol.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "deploy/mxnet/groups.h"

namespace kilter::mxnet::integer_symbol_test {

// conv+bn+relu → conv+bn, added to the first and through ReLU → pool → dense
constexpr std::string_view kResidual = R"json({"nodes": [
    {"op": "null", "name": "data", "inputs": []},
    {"op": "null", "name": "w1", "inputs": []},
    {"op": "null", "name": "g", "inputs": []},
    {"op": "null", "name": "b", "inputs": []},
    {"op": "null", "name": "m", "inputs": []},
    {"op": "null", "name": "v", "inputs": []},
    {"op": "Convolution", "name": "conv1", "attrs": {"kernel": "(1, 1)", "num_filter": "2", "no_bias": "True"}, "inputs": [[0, 0], [1, 0]]},
    {"op": "BatchNorm", "name": "bn1", "inputs": [[6, 0], [2, 0], [3, 0], [4, 0], [5, 0]]},
    {"op": "relu", "name": "relu1", "inputs": [[7, 0]]},
    {"op": "null", "name": "w2", "inputs": []},
    {"op": "Convolution", "name": "conv2", "attrs": {"kernel": "(1, 1)", "num_filter": "2", "no_bias": "True"}, "inputs": [[8, 0], [9, 0]]},
    {"op": "elemwise_add", "name": "add", "inputs": [[8, 0], [10, 0]]},
    {"op": "Activation", "name": "relu2", "attrs": {"act_type": "relu"}, "inputs": [[11, 0]]},
    {"op": "Pooling", "name": "pool", "attrs": {"kernel": "(2, 2)", "pool_type": "avg"}, "inputs": [[12, 0]]},
    {"op": "null", "name": "w3", "inputs": []},
    {"op": "FullyConnected", "name": "dense", "attrs": {"num_hidden": "3", "no_bias": "True"}, "inputs": [[13, 0], [14, 0]]}],
    "heads": [[15, 0]]})json";

NamedArrays arrays() {
    const Tensor two = Tensor::filled(DType::f32, {2}, 1);
    return {{"arg:w1", Tensor::filled(DType::f32, {2, 2, 1, 1}, 0.5)},
            {"arg:g", two},
            {"arg:b", two},
            {"aux:m", two},
            {"aux:v", two},
            {"arg:w2", Tensor::filled(DType::f32, {2, 2, 1, 1}, 0.25)},
            {"arg:w3", Tensor::of<float>({3, 2}, {1, -2, 0.5, 0, 0.1F, 2})}};
}

IntegerChoice choice() {
    IntegerChoice made;
    made.ranges = {{"data", {-1, 2}}, {"relu1_output", {0, 3}}, {"relu2_output", {0, 5}}};
    return made;
}

const SymbolNode* find(const Symbol& symbol, std::string_view name) {
    const auto found = std::ranges::find(symbol.nodes, name, &SymbolNode::name);
    return found == symbol.nodes.end() ? nullptr : &*found;
}

size_t count(const Symbol& symbol, std::string_view op) {
    return static_cast<size_t>(std::ranges::count(symbol.nodes, op, &SymbolNode::op));
}

TEST(MxnetIntegerSymbol, FusesWhatMxnetFusesUnderItsNames) {
    const IntegerModel made = make_integer(parse_symbol(kResidual), arrays(), choice());
    const SymbolNode* first = find(made.symbol, "quantized_sg_mkldnn_conv_bn_act_0");
    const SymbolNode* second = find(made.symbol, "quantized_sg_mkldnn_conv_add_act_1");
    const SymbolNode* dense = find(made.symbol, "quantized_sg_mkldnn_fully_connected_0");
    ASSERT_TRUE(first != nullptr && second != nullptr && dense != nullptr);
    EXPECT_EQ(first->inputs.size(), 8U);   // x, weights, four of batch normalization, range
    EXPECT_EQ(second->inputs.size(), 7U);  // x, weights, summand, two ranges
    EXPECT_EQ(second->get("with_postsum_act"), "true");
    EXPECT_EQ(dense->get("enable_float_output"), "True");  // nothing is known about the result
    // Bytes all the way: one border in front, none behind.
    EXPECT_EQ(count(made.symbol, "_contrib_quantize_v2"), 1U);
    EXPECT_EQ(count(made.symbol, "_contrib_dequantize"), 0U);
    EXPECT_EQ(count(made.symbol, "_contrib_quantized_pooling"), 1U);
    // It is a symbol that can be read again: inputs stand before their readers.
    EXPECT_NO_THROW(parse_symbol(to_json(made.symbol)));
}

TEST(MxnetIntegerSymbol, TheProductComesFirstInASumOfItsOwn) {
    const IntegerModel made = make_integer(parse_symbol(kResidual), arrays(), choice());
    const Symbol& inner = find(made.symbol, "quantized_sg_mkldnn_conv_add_act_1")->subgraphs.at(0);
    const SymbolNode* sum = find(inner, "add");
    ASSERT_NE(sum, nullptr);
    EXPECT_EQ(inner.nodes[sum->inputs[0].node].name, "conv2");
    EXPECT_TRUE(inner.nodes[sum->inputs[1].node].is_variable());
}

TEST(MxnetIntegerSymbol, WhatIsExcludedStaysAsItWas) {
    IntegerChoice kept = choice();
    kept.excluded = {"conv2"};
    const IntegerModel made = make_integer(parse_symbol(kResidual), arrays(), kept);
    for (const char* name : {"conv2", "add", "relu2", "pool"})
        EXPECT_NE(find(made.symbol, name), nullptr) << name;
    // Out of the first convolution for it and for the sum, once; and no range for the dense layer to begin again with.
    EXPECT_EQ(count(made.symbol, "_contrib_dequantize"), 1U);
    EXPECT_NE(find(made.symbol, "dense"), nullptr);
    const auto entry = std::ranges::find(made.operators, "conv2", &ExportedOperator::name);
    ASSERT_NE(entry, made.operators.end());
    EXPECT_TRUE(entry->fused.empty());
    EXPECT_NE(entry->note.find("plan"), std::string::npos);
}

TEST(MxnetIntegerSymbol, EveryOutputOfANodeHasItsOwnRange) {
    const Symbol symbol = parse_symbol(R"json({"nodes": [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "SliceChannel", "name": "split", "attrs": {"num_outputs": "2"}, "inputs": [[0, 0]]},
        {"op": "null", "name": "w1", "inputs": []},
        {"op": "Convolution", "name": "conv1", "attrs": {"kernel": "(1, 1)", "no_bias": "True"}, "inputs": [[1, 0], [2, 0]]},
        {"op": "null", "name": "w2", "inputs": []},
        {"op": "Convolution", "name": "conv2", "attrs": {"kernel": "(1, 1)", "no_bias": "True"}, "inputs": [[1, 1], [4, 0]]}],
        "heads": [[3, 0], [5, 0]]})json");
    IntegerChoice both;
    both.ranges = {{"split_output0", {-1, 1}},
                   {"split_output1", {-20, 20}},
                   {"conv1_output", {-2, 2}},
                   {"conv2_output", {-40, 40}}};
    const IntegerModel made = make_integer(symbol, arrays(), both);
    EXPECT_EQ(count(made.symbol, "_sg_mkldnn_conv"), 2U);
    for (const auto& [name, max] :
         {std::pair{"split_output0_quantize", "1"}, {"split_output1_quantize", "20"}}) {
        ASSERT_NE(find(made.symbol, name), nullptr) << name;
        EXPECT_EQ(find(made.symbol, name)->get("max_calib_range"), max);
    }
}

TEST(MxnetIntegerSymbol, WithoutRangesNothingChanges) {
    const Symbol symbol = parse_symbol(kResidual);
    const IntegerModel made = make_integer(symbol, arrays(), {});
    EXPECT_EQ(made.symbol.nodes.size(), symbol.nodes.size());
    EXPECT_EQ(made.arrays.size(), arrays().size());
    for (const SymbolNode& node : symbol.nodes) EXPECT_NE(find(made.symbol, node.name), nullptr) << node.name;
}

TEST(MxnetIntegerSymbol, WeightsOfProductsAreRoundedToTheirLargest) {
    const IntegerModel made = make_integer(parse_symbol(kResidual), arrays(), choice());
    const auto array = [&](std::string_view name) {
        const auto found = std::ranges::find(made.arrays, name, &std::pair<std::string, Tensor>::first);
        return found == made.arrays.end() ? Tensor() : found->second;
    };
    const Tensor weights = array("arg:w3_quantize");
    ASSERT_EQ(weights.dtype(), DType::i8);
    EXPECT_EQ(weights.to_ints(), (std::vector<int64_t>{64, -127, 32, 0, 6, 127}));
    EXPECT_EQ(array("arg:w3_quantize_max").as<float>()[0], 2.0F);
    EXPECT_TRUE(array("arg:w3").empty());
}

}  // namespace kilter::mxnet::integer_symbol_test
