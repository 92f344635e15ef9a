// What the tests of the engine share: one operator on given inputs, run by the engine and by the reference kernels.
#pragma once

#include <gtest/gtest.h>

#include "engine/stage.h"
#include "kilter/graph/graph.h"

namespace kilter::engine::testing {

//! Uniform numbers: floats in [low, high), integers between them, booleans at random.
Tensor random(DType dtype, const Shape& shape, unsigned seed, double low = -2.0, double high = 2.0);
Tensor ints(const std::vector<int64_t>& values);

//! Shapes of rank 4 that no vector length divides.
std::vector<Shape> odd_shapes();

//! A graph of one operator under test, built piece by piece, then compared with the reference.
class OpTest {
  public:
    explicit OpTest(std::string op, std::string domain = {});

    OpTest& input(Tensor tensor);     // given at run time
    OpTest& constant(Tensor tensor);  // known at compile time
    OpTest& absent();
    //! The same numbers as input(tensor), but as a transposed view: what the engine makes of a Transpose.
    OpTest& transposed(Tensor tensor);
    //! The same numbers as a part of a larger array: what the engine makes of a Slice.
    OpTest& sliced(Tensor tensor);
    //! The result of a 1x1 convolution of the tensor, in whatever layout the engine gives it. f32, rank 3 to 5.
    OpTest& convolved(Tensor tensor);
    OpTest& attribute(std::string_view name, AttributeValue value);
    OpTest& outputs(size_t count);
    //! The result goes through another operator before it is an output.
    OpTest& then(std::string_view op);
    OpTest& tolerance(double value);
    OpTest& any_kernel();  // a reference kernel is fine here

    //! Runs both with one and two threads; fails the test where they differ, or where the operator ran through `ref`.
    void check();
    //! The kernels that ran, in order.
    std::vector<StepReport> steps();

  private:
    Graph& finished();

    std::string op_, domain_;
    Graph graph_;
    std::vector<Value*> operands_;
    std::vector<Tensor> given_;
    Attributes attributes_;
    size_t outputs_ = 1;
    std::string then_;
    double tolerance_ = 1e-5;
    bool fast_ = true;
    bool finished_ = false;
};

//! Fails the current test unless both are equal: exactly for integers, within tolerance · (largest number) for floats.
void expect_close(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted,
                  double tolerance = 1e-5);

}  // namespace kilter::engine::testing
