// kilter's fused operators do what the operators they stand for do, one after the other.
#include "ops/run_op.h"

namespace kilter::fused_test {

using testing::attributes;
using testing::infer_op;
using testing::random_tensor;
using testing::run_op;
using Ints = std::vector<int64_t>;

Attributes with_post_ops(Attributes base, std::vector<std::string> names) {
    base.set("post_alphas", std::vector<float>(names.size(), 0.0F));
    base.set("post_betas", std::vector<float>(names.size(), 0.0F));
    base.set("post_ops", std::move(names));
    return base;
}

Tensor plus(const Tensor& a, const Tensor& b) { return run_op("Add", {a, b})[0]; }
Tensor relu(const Tensor& a) { return run_op("Relu", {a})[0]; }

TEST(FusedConv, AppliesPostOpsInOrder) {
    const Tensor x = random_tensor({2, 3, 6, 5}, 1), w = random_tensor({4, 3, 3, 3}, 2),
                 b = random_tensor({4}, 3);
    const Tensor residual = random_tensor({2, 4, 6, 5}, 4), shift = random_tensor({4, 1, 1}, 5);
    const Attributes window = attributes({{"pads", Ints{1, 1, 1, 1}}});
    const Tensor plain = run_op("Conv", {x, w, b}, window)[0];
    const Attributes fused = with_post_ops(window, {"add", "relu", "add"});
    testing::expect_near(run_op("Conv", {x, w, b, residual, shift}, fused, 1, kKilterDomain)[0],
                         plus(relu(plus(plain, residual)), shift));
    const Tensor no_bias = run_op("Conv", {x, w}, window)[0];
    testing::expect_near(
        run_op("Conv", {x, w, Tensor(), residual}, with_post_ops(window, {"add"}), 1, kKilterDomain)[0],
        plus(no_bias, residual));
}

TEST(FusedConvTranspose, AppliesPostOps) {
    const Tensor x = random_tensor({1, 4, 3, 3}, 1), w = random_tensor({4, 2, 2, 2}, 2);
    const Attributes window = attributes({{"strides", Ints{2, 2}}});
    testing::expect_near(
        run_op("ConvTranspose", {x, w}, with_post_ops(window, {"relu"}), 1, kKilterDomain)[0],
        relu(run_op("ConvTranspose", {x, w}, window)[0]));
}

TEST(FusedMatMul, TransposesScalesAndAddsItsBias) {
    const Tensor a = random_tensor({2, 3, 4}, 1), b = random_tensor({4, 5}, 2), bias = random_tensor({5}, 3);
    const Tensor product = run_op("MatMul", {a, b})[0];
    const Tensor expected = relu(plus(run_op("Mul", {product, Tensor::scalar<float>(0.5F)})[0], bias));
    const Attributes half = with_post_ops(attributes({{"alpha", 0.5F}}), {"relu"});
    testing::expect_near(run_op("MatMul", {a, b, bias}, half, 1, kKilterDomain)[0], expected);

    const Tensor b_transposed = run_op("Transpose", {b})[0];
    const Tensor a_transposed = run_op("Transpose", {a}, attributes({{"perm", Ints{0, 2, 1}}}))[0];
    Attributes flipped = half;
    flipped.set("trans_a", int64_t{1});
    flipped.set("trans_b", int64_t{1});
    testing::expect_near(run_op("MatMul", {a_transposed, b_transposed, bias}, flipped, 1, kKilterDomain)[0],
                         expected);
    EXPECT_THROW(run_op("MatMul", {a, b, random_tensor({4}, 4)}, half, 1, kKilterDomain), Error);
}

TEST(FusedAttention, IsSoftmaxOfScaledScoresTimesValues) {
    const Tensor q = random_tensor({2, 3, 4, 8}, 1), k = random_tensor({2, 3, 5, 8}, 2),
                 v = random_tensor({2, 3, 5, 6}, 3);
    const Tensor mask = random_tensor({2, 1, 1, 5}, 4);
    const Tensor k_transposed = run_op("Transpose", {k}, attributes({{"perm", Ints{0, 1, 3, 2}}}))[0];
    const Tensor scores =
        run_op("Mul", {run_op("MatMul", {q, k_transposed})[0], Tensor::scalar<float>(0.25F)})[0];
    const Tensor expected = run_op("MatMul", {run_op("Softmax", {plus(scores, mask)})[0], v})[0];
    Attributes options = attributes({{"scale", 0.25F}});
    testing::expect_near(run_op("Attention", {q, k, v, mask}, options, 1, kKilterDomain)[0], expected);
    options.set("k_transposed", int64_t{1});
    testing::expect_near(run_op("Attention", {q, k_transposed, v, mask}, options, 1, kKilterDomain)[0],
                         expected);
    EXPECT_THROW(run_op("Attention", {q, k, v, mask}, options, 1, kKilterDomain), Error);
    // The operator of ONNX agrees where the two overlap.
    testing::expect_near(run_op("Attention", {q, k, v, mask}, attributes({{"scale", 0.25F}}))[0], expected);
}

TEST(FusedOperators, RefuseUnknownOrIncompletePostOps) {
    const Tensor x = random_tensor({1, 1, 3, 3}, 1), w = random_tensor({1, 1, 1, 1}, 2);
    EXPECT_THROW(run_op("Conv", {x, w}, with_post_ops({}, {"polish"}), 1, kKilterDomain), Error);
    EXPECT_THROW(run_op("Conv", {x, w}, with_post_ops({}, {"add"}), 1, kKilterDomain), Error);
    EXPECT_THROW(
        infer_op("Conv", {ValueType::of(x), ValueType::of(w)}, with_post_ops({}, {"add"}), kKilterDomain),
        Error);
}

}  // namespace kilter::fused_test
