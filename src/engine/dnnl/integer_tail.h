// What happens to the integer sums of QConv and QMatMul, as oneDNN attributes: scales, bias, residual, activation, rounding.
// The order is that of docs/arithmetic.md, "Requantization"; the reference kernels follow it to the bit.
#pragma once

#include <initializer_list>

#include "engine/builder.h"
#include "ops/integer_result.h"

namespace kilter::engine {

class IntegerTail {
  public:
    //! `result` is the shape the primitive writes. `scales` are those of the sums, one or one per channel.
    IntegerTail(Builder& builder, const Node& node, std::vector<float> scales, int64_t source_zero_point,
                const Shape& result, int64_t weights_zero_point = 0);

    //! The fused form does everything in the primitive. The plain one writes the scaled sums (and bias) as f32; finish() does
    //! the rest: it is there for post-ops that no fast kernel takes.
    dnnl::primitive_attr attributes(bool fused, int channel_mask) const;
    DType dtype(bool fused) const { return fused ? type_.dtype : DType::f32; }

    //! Adds scales, zero points and operands to the arguments.
    void bind(const dnnl::primitive_desc_base& pd, bool fused,
              std::vector<Builder::Argument>& arguments) const;
    //! Where the primitive writes, laid out as `desc`. The residual is there already when the attributes have a sum; it stays
    //! in place when it dies here and no other argument (`sources`, the operands) lives in its memory.
    Array destination(const dnnl::memory::desc& desc, bool fused,
                      std::initializer_list<const Value*> sources) const;
    //! The steps after a plain primitive that wrote `sums`.
    void finish(const Array& sums) const;

  private:
    const Value* operand(size_t index) const;
    dnnl::memory::dims operand_dims(size_t index) const;
    bool stays_in_place(const Array& residual, std::initializer_list<const Value*> sources) const;

    Builder& builder_;
    const Node& node_;
    FloatTail tail_;
    ResultType type_;
    float y_scale_;
    int64_t source_zero_point_, weights_zero_point_;
    Shape result_;
    int residual_ = -1;  // the post-op that becomes a sum
    float residual_scale_ = 1.0F;
    int64_t residual_zero_point_ = 0;
};

}  // namespace kilter::engine
