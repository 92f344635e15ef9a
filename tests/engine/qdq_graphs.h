// Small QDQ graphs for the tests: operators between QuantizeLinear and DequantizeLinear, as quantizers write them.
#pragma once

#include <random>

#include "engine/testing.h"
#include "kilter/engine/program.h"

namespace kilter::engine::testing {

//! Scale and zero point of an activation.
struct Affine {
    float scale = 0.05F;
    int zero_point = 128;
    DType dtype = DType::u8;
};

class QdqGraph {
  public:
    explicit QdqGraph(unsigned seed = 1) : random_(seed) {}

    //! An f32 input of the model with numbers in [low, high).
    Value* input(const Shape& shape, double low = -4.0, double high = 4.0, bool dynamic_batch = false);
    Value* quantize(Value* x, const Affine& affine);
    Value* dequantize(Value* x, const Affine& affine);
    Value* both(Value* x, const Affine& affine) { return dequantize(quantize(x, affine), affine); }
    //! DequantizeLinear of constant i8 weights, one scale per index of `axis`, or one for all when it is negative.
    Value* weights(const Shape& shape, int axis, float scale = 0.02F);
    Value* bias(int64_t count);
    Value* op(std::string_view name, std::vector<Value*> inputs, Attributes attributes = {},
              std::string_view domain = {});
    void output(Value* value) { graph_.add_output(value); }

    //! The outputs of a program made from the graph.
    std::vector<Tensor> run(const EngineOptions& options) const;
    //! The same bits from the engine, with one and two threads, as from the scalar kernels.
    void expect_same_bits() const;
    //! At most one step of difference, on at most one element in a thousand.
    void expect_nearly_same() const;
    //! The integer operators agree with the float interpretation of Q and DQ: within `steps` of `step` everywhere.
    void expect_float_meaning(double step, double steps = 1.01) const;
    //! The steps of the compiled graph.
    std::vector<StepReport> steps() const;
    //! How often an operator of kilter's domain is in the lowered graph.
    size_t count(std::string_view op, std::string_view domain = kKilterDomain) const;
    Graph& graph() { return graph_; }

  private:
    Model model() const;
    Tensor numbers(const Shape& shape, double low, double high);

    std::mt19937 random_;
    Graph graph_;
    std::vector<Tensor> given_;
};

Attributes with(std::string_view name, AttributeValue value, Attributes attributes = {});

}  // namespace kilter::engine::testing
