#include <gtest/gtest.h>

#include "ops/cost.h"

namespace kilter::cost_test {

// An operator with given shapes; the output's shape is what inference would have found.
std::optional<int64_t> macs(std::string_view op, const std::vector<Dims>& inputs, const Dims& output,
                            Attributes attributes = {}, std::string_view domain = {}) {
    Graph graph;
    std::vector<Value*> values;
    for (size_t i = 0; i < inputs.size(); ++i)
        values.push_back(graph.add_input("x" + std::to_string(i), {DType::f32, inputs[i]}));
    Value* result = graph.add(op, values, std::move(attributes), {}, domain);
    result->type = {DType::f32, output};
    return multiply_accumulates(*result->producer());
}

TEST(Cost, CountsEveryProduct) {
    EXPECT_EQ(macs("Conv", {{2, 8, 9, 9}, {16, 4, 3, 3}}, {2, 16, 7, 7}), 2 * 16 * 7 * 7 * 4 * 3 * 3);
    EXPECT_EQ(macs("ConvTranspose", {{1, 8, 5, 5}, {8, 4, 3, 3}}, {1, 4, 7, 7}), 8 * 5 * 5 * 4 * 3 * 3);
    EXPECT_EQ(macs("MatMul", {{2, 3, 4}, {4, 5}}, {2, 3, 5}), 2 * 3 * 4 * 5);
    Attributes transposed;
    transposed.set("transA", int64_t{1});
    EXPECT_EQ(macs("Gemm", {{4, 3}, {4, 5}}, {3, 5}, transposed), 3 * 4 * 5);
    EXPECT_EQ(macs("Attention", {{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 6}}, {1, 2, 3, 6}, {}, "kilter"),
              2 * 3 * 5 * (4 + 6));
    EXPECT_EQ(macs("LSTM", {{7, 2, 3}, {1, 16, 3}, {1, 16, 4}}, {7, 1, 2, 4}), 7 * 2 * (16 * 3 + 16 * 4));
    EXPECT_EQ(macs("Relu", {{2, 3}}, {2, 3}), 0);
}

TEST(Cost, IsUnknownWhereShapesAre) {
    EXPECT_EQ(macs("MatMul", {{Dim("batch"), 4}, {4, 5}}, {Dim("batch"), 5}), std::nullopt);
    const int64_t huge = int64_t{1} << 40;
    EXPECT_EQ(macs("MatMul", {{huge, huge}, {huge, huge}}, {huge, huge}), std::nullopt);
}

TEST(Cost, CountsParametersThatAreRead) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, 3}});
    graph.add_constant(Tensor::filled(DType::f32, {100}, 0), "unused");
    graph.add_output(graph.add("MatMul", {x, graph.add_constant(Tensor::filled(DType::f32, {3, 4}, 1))}),
                     "y");
    EXPECT_EQ(parameter_count(graph), 12);
    EXPECT_EQ(parameter_bytes(graph), 48U);
}

TEST(Cost, OnlyFloatProductsCouldBeQuantized) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {3, 3}});
    Value* i = graph.add_input("i", {DType::i64, {3, 3}});
    EXPECT_TRUE(is_quantizable(*graph.add("MatMul", {x, x})->producer()));
    EXPECT_FALSE(is_quantizable(*graph.add("MatMul", {i, i})->producer()));
    EXPECT_FALSE(is_quantizable(*graph.add("Relu", {x})->producer()));
}

}  // namespace kilter::cost_test
