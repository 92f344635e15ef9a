#include "ops/run_op.h"

namespace kilter::recurrent_test {

using testing::attributes;
using testing::infer_op;
using testing::random_tensor;
using testing::run_op;
using Ints = std::vector<int64_t>;

struct Recurrent {
    const char* op;
    int64_t gates;
    size_t outputs;
};

constexpr Recurrent kOperators[] = {{"RNN", 1, 2}, {"GRU", 3, 2}, {"LSTM", 4, 3}};
constexpr int64_t kSteps = 5, kBatch = 3, kInputs = 2, kHidden = 4;

std::vector<Tensor> inputs_of(const Recurrent& kind, int64_t directions) {
    return {random_tensor({kSteps, kBatch, kInputs}, 1),
            random_tensor({directions, kind.gates * kHidden, kInputs}, 2),
            random_tensor({directions, kind.gates * kHidden, kHidden}, 3),
            random_tensor({directions, 2 * kind.gates * kHidden}, 4)};
}

Attributes directed(const char* direction) {
    return attributes({{"hidden_size", kHidden}, {"direction", std::string(direction)}});
}

// One direction of stacked weights.
Tensor part(const Tensor& stacked, int64_t index) {
    Shape shape = stacked.shape();
    shape[0] = 1;
    Tensor result(DType::f32, shape);
    std::copy_n(stacked.as<float>().begin() + index * result.size(), result.size(),
                result.as_mutable<float>().begin());
    return result;
}

// Element (step, direction 0, item, unit) of a sequence of outputs, counted from its own layout.
float unit(const Tensor& y, int64_t step, int64_t direction, int64_t item, int64_t index) {
    return y.as<float>()[static_cast<size_t>(((step * y.dim(1) + direction) * y.dim(2) + item) * y.dim(3) +
                                             index)];
}

TEST(Recurrent, BothDirectionsAreOneOfEach) {
    for (const Recurrent& kind : kOperators) {
        const std::vector<Tensor> both = inputs_of(kind, 2);
        const auto one = [&](int64_t direction) {
            return std::vector<Tensor>{both[0], part(both[1], direction), part(both[2], direction),
                                       part(both[3], direction)};
        };
        const Tensor y = run_op(kind.op, both, directed("bidirectional"), kind.outputs)[0];
        const Tensor forward = run_op(kind.op, one(0), directed("forward"), kind.outputs)[0];
        const Tensor backward = run_op(kind.op, one(1), directed("reverse"), kind.outputs)[0];
        ASSERT_EQ(y.shape(), (Shape{kSteps, 2, kBatch, kHidden}));
        for (int64_t step = 0; step < kSteps; ++step)
            for (int64_t item = 0; item < kBatch; ++item)
                for (int64_t i = 0; i < kHidden; ++i) {
                    EXPECT_EQ(unit(y, step, 0, item, i), unit(forward, step, 0, item, i)) << kind.op;
                    EXPECT_EQ(unit(y, step, 1, item, i), unit(backward, step, 0, item, i)) << kind.op;
                }
    }
}

TEST(Recurrent, StopsAtTheLengthOfEachSequence) {
    for (const Recurrent& kind : kOperators) {
        std::vector<Tensor> inputs = inputs_of(kind, 1);
        inputs.push_back(Tensor::of<int32_t>({kBatch}, {5, 2, 0}));
        const std::vector<Tensor> results = run_op(kind.op, inputs, directed("forward"), kind.outputs);
        for (int64_t i = 0; i < kHidden; ++i) {
            EXPECT_EQ(unit(results[0], 2, 0, 1, i), 0.0F) << kind.op;
            EXPECT_EQ(results[1].as<float>()[static_cast<size_t>(kHidden + i)], unit(results[0], 1, 0, 1, i))
                << kind.op;
            EXPECT_EQ(results[1].as<float>()[static_cast<size_t>(2 * kHidden + i)], 0.0F) << kind.op;
        }
        inputs[4] = Tensor::of<int32_t>({kBatch}, {5, 6, 1});
        EXPECT_THROW(run_op(kind.op, inputs, directed("forward"), kind.outputs), Error);
    }
}

TEST(Recurrent, ContinuesFromAnInitialState) {
    for (const Recurrent& kind : kOperators) {
        std::vector<Tensor> whole = inputs_of(kind, 1);
        const std::vector<Tensor> expected = run_op(kind.op, whole, directed("forward"), kind.outputs);
        const auto steps = [&](int64_t first, int64_t count) {
            Tensor cut(DType::f32, {count, kBatch, kInputs});
            std::copy_n(whole[0].as<float>().begin() + first * kBatch * kInputs, cut.size(),
                        cut.as_mutable<float>().begin());
            return cut;
        };
        const std::vector<Tensor> first =
            run_op(kind.op, {steps(0, 2), whole[1], whole[2], whole[3]}, directed("forward"), kind.outputs);
        std::vector<Tensor> rest{steps(2, 3), whole[1], whole[2], whole[3], Tensor(), first[1]};
        if (kind.outputs == 3) rest.push_back(first[2]);
        testing::expect_near(run_op(kind.op, rest, directed("forward"), kind.outputs)[1], expected[1]);
    }
}

TEST(Recurrent, LayoutOnlyMovesAxes) {
    for (const Recurrent& kind : kOperators) {
        std::vector<Tensor> inputs = inputs_of(kind, 2);
        const Tensor y = run_op(kind.op, inputs, directed("bidirectional"), kind.outputs)[0];
        inputs[0] = run_op("Transpose", {inputs[0]}, attributes({{"perm", Ints{1, 0, 2}}}))[0];
        Attributes batch_first = directed("bidirectional");
        batch_first.set("layout", int64_t{1});
        const Tensor moved = run_op(kind.op, inputs, batch_first, kind.outputs)[0];
        testing::expect_near(moved, run_op("Transpose", {y}, attributes({{"perm", Ints{2, 0, 1, 3}}}))[0]);
    }
}

TEST(Recurrent, InfersShapesWithSymbols) {
    const std::vector<ValueType> types{
        {DType::f32, {Dim("steps"), Dim("batch"), 2}}, {DType::f32, {2, 16, 2}}, {DType::f32, {2, 16, 4}}};
    EXPECT_EQ(to_string(infer_op("LSTM", types, directed("bidirectional"))), "f32[steps, 2, batch, 4]");
    EXPECT_THROW(infer_op("LSTM", types, directed("forward")), Error);
    EXPECT_THROW(infer_op("GRU", types, directed("bidirectional")), Error);
}

TEST(Recurrent, RefusesUnknownActivations) {
    Attributes options = directed("forward");
    options.set("activations", std::vector<std::string>{"Sine"});
    EXPECT_THROW(run_op("RNN", inputs_of(kOperators[0], 1), options, 2), Error);
    options.set("activations", std::vector<std::string>{"Tanh", "Tanh"});
    EXPECT_THROW(run_op("RNN", inputs_of(kOperators[0], 1), options, 2), Error);
}

}  // namespace kilter::recurrent_test
