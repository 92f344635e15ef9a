#include "ops/run_op.h"

namespace kilter::product_test {

using testing::attributes;
using testing::error_of;
using testing::infer_op;
using testing::random_tensor;
using testing::run_op;

// a[..., i, k] · b[k, j] for one matrix each.
Tensor direct_product(const Tensor& a, const Tensor& b) {
    const int64_t rows = a.dim(-2), inner = a.dim(-1), columns = b.dim(-1);
    Tensor c(DType::f32, {rows, columns});
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < inner; ++k)
                sum += static_cast<double>(a.as<float>()[static_cast<size_t>(i * inner + k)]) *
                       b.as<float>()[static_cast<size_t>(k * columns + j)];
            c.as_mutable<float>()[static_cast<size_t>(i * columns + j)] = static_cast<float>(sum);
        }
    return c;
}

Tensor slice(const Tensor& batch, int64_t index) {
    Tensor matrix(DType::f32, {batch.dim(-2), batch.dim(-1)});
    std::copy_n(batch.as<float>().begin() + index * matrix.size(), matrix.size(),
                matrix.as_mutable<float>().begin());
    return matrix;
}

TEST(MatMul, MultipliesMatricesOfOddShapes) {
    for (const Shape& shape : {Shape{1, 1, 1}, Shape{3, 7, 2}, Shape{9, 5, 11}, Shape{4, 1, 6}}) {
        const Tensor a = random_tensor({shape[0], shape[1]}, 1);
        const Tensor b = random_tensor({shape[1], shape[2]}, 2);
        testing::expect_near(run_op("MatMul", {a, b})[0], direct_product(a, b));
    }
}

TEST(MatMul, BroadcastsBatchDimensions) {
    const Tensor a = random_tensor({2, 1, 3, 4}, 1);
    const Tensor b = random_tensor({5, 4, 2}, 2);
    const Tensor y = run_op("MatMul", {a, b})[0];
    ASSERT_EQ(y.shape(), (Shape{2, 5, 3, 2}));
    for (int64_t i = 0; i < 2; ++i)
        for (int64_t j = 0; j < 5; ++j)
            testing::expect_near(slice(y, i * 5 + j), direct_product(slice(a, i), slice(b, j)));
}

TEST(MatMul, TreatsVectorsAsRowsAndColumns) {
    const Tensor matrix = random_tensor({3, 4}, 1);
    const Tensor row = random_tensor({3}, 2);
    const Tensor column = random_tensor({4}, 3);
    testing::expect_near(run_op("MatMul", {row, matrix})[0],
                         direct_product(row.reshaped({1, 3}), matrix).reshaped({4}));
    testing::expect_near(run_op("MatMul", {matrix, column})[0],
                         direct_product(matrix, column.reshaped({4, 1})).reshaped({3}));
    EXPECT_EQ(run_op("MatMul", {row, row})[0].shape(), Shape());
    EXPECT_EQ(to_string(infer_op("MatMul", {{DType::f32, {3}}, {DType::f32, {Dim("batch"), 3, 5}}})),
              "f32[batch, 5]");
}

TEST(MatMul, WrapsIntegers) {
    const Tensor a = Tensor::of<int32_t>({1, 1}, {1 << 30});
    const Tensor b = Tensor::of<int32_t>({1, 1}, {4});
    EXPECT_EQ(run_op("MatMul", {a, b})[0].to_ints(), std::vector<int64_t>{0});
}

TEST(MatMul, SaysWhichDimensionsDiffer) {
    EXPECT_EQ(error_of([] {
                  infer_op("MatMul", {{DType::f32, {2, 3}}, {DType::f32, {4, 5}}});
              }),
              "operator 'node' (MatMul): cannot multiply [2, 3] by [4, 5]: inner dimensions 3 and 4 differ");
    EXPECT_THROW(run_op("MatMul", {random_tensor({2, 3}, 1), Tensor::scalar<float>(1)}), Error);
}

TEST(Gemm, TransposesScalesAndAddsABroadcastTerm) {
    const Tensor a = Tensor::of<float>({2, 1}, {1, 2});              // transposed: [1, 2]
    const Tensor b = Tensor::of<float>({3, 2}, {1, 0, 0, 1, 1, 1});  // transposed: [2, 3]
    const Tensor c = Tensor::of<float>({1, 1}, {10});
    const Attributes options =
        attributes({{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 2.0F}, {"beta", 0.5F}});
    const Tensor y = run_op("Gemm", {a, b, c}, options)[0];
    testing::expect_near(y, Tensor::of<float>({1, 3}, {7, 9, 11}));
    EXPECT_THROW(run_op("Gemm", {a, b, random_tensor({4}, 1)}, options), Error);
}

TEST(QLinearMatMul, AppliesScalesByRowAndByColumn) {
    const Tensor a = Tensor::of<uint8_t>({2, 1}, {11, 12});
    const Tensor b = Tensor::of<int8_t>({1, 2}, {3, 4});
    const Tensor y =
        run_op("QLinearMatMul", {a, Tensor::of<float>({2}, {1, 10}), Tensor::of<uint8_t>({2}, {10, 10}), b,
                                 Tensor::of<float>({2}, {1, 2}), Tensor::of<int8_t>({2}, {0, 0}),
                                 Tensor::scalar<float>(1), Tensor::scalar<uint8_t>(0)})[0];
    EXPECT_EQ(y.to_ints(), (std::vector<int64_t>{3, 8, 60, 160}));
}

TEST(Einsum, CoversTheNotationOfNumpy) {
    const Tensor a = random_tensor({3, 4}, 1);
    const Tensor b = random_tensor({4, 5}, 2);
    const auto einsum = [](const std::string& equation, const std::vector<Tensor>& operands) {
        return run_op("Einsum", operands, attributes({{"equation", equation}}))[0];
    };
    testing::expect_near(einsum("ij,jk->ik", {a, b}), direct_product(a, b));
    testing::expect_near(einsum("ij,jk", {a, b}), direct_product(a, b));
    testing::expect_near(einsum("...ij , jk -> ...ik", {a, b}), direct_product(a, b));
    const Tensor square = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
    testing::expect_near(einsum("ii", {square}), Tensor::scalar<float>(5));
    testing::expect_near(einsum("ii->i", {square}), Tensor::of<float>({2}, {1, 4}));
    testing::expect_near(einsum("ij->ji", {square}), Tensor::of<float>({2, 2}, {1, 3, 2, 4}));
    for (const char* nonsense : {"", "ij,jk->il", "ij->jj", "i-j", "......", "ijk"})
        EXPECT_THROW(einsum(nonsense, {square}), Error) << nonsense;
}

}  // namespace kilter::product_test
