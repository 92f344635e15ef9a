// Sequences and optional values: what the onnx package's cases do not cover, wrong use above all.
#include "engine/stage.h"
#include "ops/run_op.h"

namespace kilter::sequence_test {

using testing::attributes;
using testing::error_of;
using testing::run_op;

Tensor pair() { return Tensor::sequence({Tensor::of<float>({2}, {1, 2}), Tensor::of<float>({1}, {3})}); }

Tensor number(int64_t value) { return Tensor::scalar<int64_t>(value); }

TEST(Sequence, KeepsItsElements) {
    const Tensor longer = run_op("SequenceInsert", {pair(), Tensor::of<float>({1}, {9}), number(-1)})[0];
    ASSERT_EQ(longer.shape(), Shape{3});
    EXPECT_TRUE(identical(longer.as_sequence()[1], Tensor::of<float>({1}, {9})));
    EXPECT_TRUE(identical(run_op("SequenceErase", {longer, number(1)})[0], pair()));
    EXPECT_TRUE(identical(run_op("SequenceAt", {pair(), number(-2)})[0], Tensor::of<float>({2}, {1, 2})));
    EXPECT_TRUE(identical(run_op("ConcatFromSequence", {pair()}, attributes({{"axis", int64_t{0}}}))[0],
                          Tensor::of<float>({3}, {1, 2, 3})));
    EXPECT_TRUE(identical(pair().clone(), pair()));
}

TEST(Sequence, SaysWhatIsWrong) {
    EXPECT_NE(error_of([] { run_op("SequenceAt", {pair(), number(2)}); }).find("outside"), std::string::npos);
    EXPECT_NE(error_of([] { run_op("SequenceErase", {Tensor::sequence({})}); }).find("empty"),
              std::string::npos);
    EXPECT_NE(error_of([] {
                  run_op("SequenceInsert", {pair(), number(1)});
              }).find("sequence of f32"),
              std::string::npos);
    EXPECT_NE(error_of([] { run_op("SequenceLength", {number(1)}); }).find("expected a sequence"),
              std::string::npos);
    EXPECT_NE(error_of([] { run_op("OptionalGetElement", {Tensor::nothing()}); }).find("absent"),
              std::string::npos);
}

// Kernels of tensors would read memory that a sequence does not have.
TEST(Sequence, IsNoTensor) {
    for (const char* op : {"Relu", "Shape", "Transpose", "Flatten", "NonZero", "Abs"})
        EXPECT_NE(error_of([&] { run_op(op, {pair()}); }).find("must be a tensor"), std::string::npos) << op;
    EXPECT_NE(error_of([] {
                  run_op("Add", {Tensor::nothing(), number(1)});
              }).find("must be a tensor"),
              std::string::npos);
}

TEST(Sequence, PassesThroughTheEngine) {
    Graph graph;
    Value* x = graph.add_input("x", ValueType(DType::f32, {Dim("n"), 3}));
    Value* parts = graph.add("SplitToSequence", {x}, attributes({{"keepdims", int64_t{0}}}));
    Value* last = graph.add("SequenceAt", {parts, graph.add_constant(number(-1))});
    graph.add_output(graph.add("Relu", {last}), "y");
    graph.add_output(parts, "parts");
    infer_types(graph);
    engine::Stage stage(std::move(graph), {}, std::make_shared<engine::WeightStore>());
    for (const int64_t rows : {2, 3, 2}) {
        const Tensor input = testing::random_tensor({rows, 3}, 1);
        const std::vector<Tensor> found = stage.run({input});
        ASSERT_EQ(found[0].shape(), Shape{3});
        for (size_t i = 0; i < 3; ++i)
            EXPECT_EQ(found[0].as<float>()[i],
                      std::max(0.0F, input.as<float>()[static_cast<size_t>(3 * (rows - 1)) + i]));
        EXPECT_EQ(found[1].as_sequence().size(), static_cast<size_t>(rows));
    }
}

}  // namespace kilter::sequence_test
