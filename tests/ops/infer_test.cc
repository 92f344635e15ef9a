// Shape rules on the chains of operators that exporters write: symbols must survive shape arithmetic.
#include <gtest/gtest.h>

#include "kilter/base/error.h"
#include "kilter/graph/graph.h"

namespace kilter::infer_test {

Attributes with(std::string_view name, AttributeValue value) {
    Attributes attributes;
    attributes.set(name, std::move(value));
    return attributes;
}

class InferTest : public ::testing::Test {
  protected:
    Value* input(Dims dims, DType dtype = DType::f32) {
        return graph.add_input(graph.fresh_name("x"), {dtype, std::move(dims)});
    }
    Value* ints(std::vector<int64_t> values) {
        return graph.add_constant(Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
    }
    Value* number(int64_t value) { return graph.add_constant(Tensor::scalar<int64_t>(value)); }
    //! Shape(x)[index], as a vector of one entry.
    Value* dim(Value* x, int64_t index) {
        return graph.add("Unsqueeze",
                         {graph.add("Gather", {graph.add("Shape", {x}), number(index)}), ints({0})});
    }
    Value* join(std::vector<Value*> parts) {
        return graph.add("Concat", std::move(parts), with("axis", int64_t{0}));
    }
    std::string type_of(Value* value) {
        infer_types(graph);
        return to_string(value->type);
    }

    Graph graph;
};

TEST_F(InferTest, ReshapeFollowsAShapeVector) {
    Value* x = input({Dim("batch"), 128, 768});
    Value* y = graph.add("Reshape", {x, join({dim(x, 0), ints({128}), ints({12}), ints({64})})});
    EXPECT_EQ(type_of(y), "f32[batch, 128, 12, 64]");
}

TEST_F(InferTest, ReshapeWorksOutMinusOneWhereSymbolsCancel) {
    Value* x = input({Dim("batch"), 12, Dim("sequence"), 64});
    Value* y = graph.add("Reshape", {x, join({dim(x, 0), dim(x, 2), ints({-1})})});
    EXPECT_EQ(type_of(y), "f32[batch, sequence, 768]");
    Value* z = graph.add("Reshape", {x, ints({0, 0, -1, 64})});
    EXPECT_EQ(type_of(z), "f32[batch, 12, sequence, 64]");
    Value* flat = graph.add("Reshape", {x, ints({-1, 64})});
    EXPECT_EQ(type_of(flat), "f32[12 · batch · sequence, 64]");
    Value* again = graph.add("Reshape", {flat, join({dim(x, 0), ints({-1, 12, 64})})});
    EXPECT_EQ(type_of(again), "f32[batch, sequence, 12, 64]");
}

TEST_F(InferTest, ReshapeOfOneUnknownEntryIsWorkedOutToo) {
    Value* x = input({Dim("batch"), 6});
    Value* unknown = input({1}, DType::i64);
    EXPECT_EQ(type_of(graph.add("Reshape", {x, join({dim(x, 0), ints({2}), unknown})})), "f32[batch, 2, 3]");
}

TEST_F(InferTest, ShapeArithmeticKeepsSymbolsAndComputesNumbers) {
    Value* x = input({Dim("batch"), 128, 768});
    Value* heads = graph.add("Div", {dim(x, 2), ints({64})});
    Value* same = graph.add("Mul", {dim(x, 0), ints({1})});
    Value* shape = join({graph.add("Cast", {same}, with("to", int64_t{7})), dim(x, 1), heads, ints({64})});
    EXPECT_EQ(type_of(graph.add("Reshape", {x, shape})), "f32[batch, 128, 12, 64]");
}

TEST_F(InferTest, ExpandAsPyTorchWritesIt) {
    // expand(shape with -1): Where(shape == -1, 1, shape)
    Value* x = input({Dim("batch"), 1, 4});
    Value* shape = join({dim(x, 0), ints({7}), ints({-1})});
    Value* ones = graph.add("ConstantOfShape", {ints({3})}, with("value", Tensor::of<int64_t>({1}, {1})));
    Value* test = graph.add("Equal", {shape, graph.add("Mul", {ones, number(-1)})});
    EXPECT_EQ(type_of(graph.add("Expand", {x, graph.add("Where", {test, ones, shape})})), "f32[batch, 7, 4]");
}

TEST_F(InferTest, RangeUpToASymbolHasItsLength) {
    Value* x = input({Dim("batch"), Dim("sequence")}, DType::i64);
    Value* length = graph.add("Squeeze", {dim(x, 1)});
    EXPECT_EQ(type_of(graph.add("Range", {number(0), length, number(1)})), "i64[sequence]");
    EXPECT_EQ(type_of(graph.add("Range", {number(10), number(0), number(-3)})), "i64[4]");
}

TEST_F(InferTest, SlicesShapesAndTensors) {
    Value* x = input({Dim("batch"), Dim("sequence"), 10});
    const int64_t end = std::numeric_limits<int64_t>::max();
    EXPECT_EQ(type_of(graph.add("Slice", {x, ints({0, 1}), ints({end, 9}), ints({1, 2}), ints({1, 3})})),
              "f32[batch, sequence, 3]");
    EXPECT_EQ(type_of(graph.add("Slice", {x, ints({-1}), ints({-end}), ints({2}), ints({-1})})),
              "f32[batch, sequence, 10]");
    Value* tail = graph.add("Slice", {graph.add("Shape", {x}), ints({1}), ints({end}), ints({0})});
    EXPECT_EQ(type_of(graph.add("ConstantOfShape", {tail})), "f32[sequence, 10]");
}

TEST_F(InferTest, SplitsUnevenly) {
    Value* x = input({Dim("batch"), 7});
    std::vector<Value*> parts{graph.add_value("a"), graph.add_value("b"), graph.add_value("c")};
    Attributes attributes = with("axis", int64_t{-1});
    attributes.set("num_outputs", int64_t{3});
    graph.add_node("Split", {x}, parts, attributes);
    EXPECT_EQ(type_of(parts[0]), "f32[batch, 3]");
    EXPECT_EQ(type_of(parts[2]), "f32[batch, 1]");
}

TEST_F(InferTest, BroadcastsSymbols) {
    Value* a = input({Dim("batch"), 1, 4});
    Value* b = input({3, 4});
    EXPECT_EQ(type_of(graph.add("Add", {a, b})), "f32[batch, 3, 4]");
    EXPECT_EQ(type_of(graph.add("Less", {a, b})), "bool[batch, 3, 4]");
}

TEST_F(InferTest, ReducesAndFlattens) {
    Value* x = input({Dim("batch"), 3, 4});
    EXPECT_EQ(type_of(graph.add("ReduceMean", {x, ints({-1, 1})}, with("keepdims", int64_t{0}))),
              "f32[batch]");
    EXPECT_EQ(type_of(graph.add("ReduceMax", {x})), "f32[1, 1, 1]");
    EXPECT_EQ(type_of(graph.add("Flatten", {x})), "f32[batch, 12]");
    EXPECT_EQ(type_of(graph.add("ArgMax", {x}, with("axis", int64_t{1}))), "i64[batch, 1, 4]");
}

struct Nonsense {
    const char* op;
    Dims x;
    std::vector<std::vector<int64_t>> vectors;  // further inputs
    const char* message;
};

constexpr int64_t kHuge = int64_t{1} << 60;

TEST_F(InferTest, RejectsNonsense) {
    const std::vector<Nonsense> cases{
        {"Reshape", {2, 3}, {{4, 2}}, "do not divide evenly"},
        {"Reshape", {2, 3}, {{3}}, "cannot reshape [2, 3] to [3]"},
        {"Reshape", {2, 3}, {{-1, 4}}, "do not divide evenly"},
        {"Reshape", {2, 3}, {{-1, -1}}, "more than one -1"},
        {"Reshape", {2, 3}, {{-2}}, "negative dimension"},
        {"Reshape", {2}, {{1, 1, 0}}, "copies dimension 2"},
        {"Expand", {2}, {{3}}, "cannot broadcast"},
        {"Expand", {2}, {{-5, 2}}, "negative"},
        {"Unsqueeze", {2}, {{5}}, "out of range"},
        {"Unsqueeze", {2}, {{0, 0}}, "listed twice"},
        {"Squeeze", {2, 1}, {{0}}, "is not 1"},
        {"Tile", {2}, {{1, 2}}, "repeats"},
        {"Tile", {16}, {{kHuge}}, "cannot repeat"},
        {"Pad", {2}, {{kHuge * 4, kHuge * 4}}, "do not fit"},
        {"Pad", {2}, {{-2, -2}}, "do not fit"},
        {"Pad", {2, 2}, {{1, 1}}, "pads has 2 entries"},
        {"Slice", {4}, {{0}, {4}, {0}, {0}}, "must not be 0"},
        {"Slice", {4}, {{0}, {4}, {3}, {1}}, "out of range"},
        {"Slice", {4}, {{0, 0}, {4}}, "different lengths"},
        {"Split", {4}, {{5}}, "do not add up"},
        {"Gather", {}, {{0}}, "scalar"},
        {"ReduceSum", {2}, {{1}}, "out of range"},
        {"TopK", {4}, {{5}}, "more than the 4"},
        {"ConstantOfShape", {}, {}, "takes 1 inputs, found 0"},
    };
    for (const Nonsense& item : cases) {
        Graph fresh;
        std::vector<Value*> inputs;
        if (std::string_view(item.op) != "ConstantOfShape")
            inputs.push_back(fresh.add_input("x", {DType::f32, item.x}));
        for (const std::vector<int64_t>& vector : item.vectors)
            inputs.push_back(
                fresh.add_constant(Tensor::of<int64_t>({static_cast<int64_t>(vector.size())}, vector)));
        Value* y = fresh.add_value("y");
        std::vector<Value*> outputs{y};
        if (std::string_view(item.op) == "TopK") outputs.push_back(fresh.add_value("indices"));
        fresh.add_node(item.op, inputs, outputs, {}, "node");
        try {
            infer_types(fresh);
            ADD_FAILURE() << item.op << " accepted nonsense: " << item.message;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(item.message), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find("'node'"), std::string::npos) << error.what();
        }
    }
}

TEST_F(InferTest, RejectsDifferentElementTypes) {
    Value* a = input({2});
    Value* b = input({2}, DType::i64);
    graph.add("Add", {a, b}, {}, "sum");
    EXPECT_THROW(infer_types(graph), Error);
}

}  // namespace kilter::infer_test
