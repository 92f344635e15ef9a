// Post-ops of kilter's fused operators as oneDNN attributes.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "engine/builder.h"
#include "ops/post_ops.h"

namespace kilter::engine {

struct Eltwise {
    dnnl::algorithm algorithm;
    float alpha, beta;
};

//! Null for binary post-ops.
std::optional<Eltwise> eltwise(const PostOp& op);
std::optional<dnnl::algorithm> binary_algorithm(std::string_view name);

//! The shape of an operand seen with the rank of the result; leading dimensions collapse where the result's have.
dnnl::memory::dims brought_to_rank(Shape operand, size_t rank);

//! The first `fused` post-ops of a node in a primitive's attributes; the rest is applied by steps of its own.
class FusedPostOps {
  public:
    //! `result` is the shape the primitive writes; operands are brought to its rank. `flat` (for matmul) collapses all
    //! leading dimensions into one, which operands must allow.
    FusedPostOps(Builder& builder, const Node& node, std::vector<PostOp> ops, const Shape& result);

    //! Attributes with the first `count` post-ops. `in_place` names the operand that becomes a sum, or -1.
    dnnl::primitive_attr attributes(size_t count) const;
    size_t size() const { return ops_.size(); }
    const PostOp& op(size_t index) const { return ops_[index]; }

    //! May the operand of the first post-op be accumulated in place? It must be a full-size add whose buffer dies here and
    //! holds none of `sources`, the values the primitive reads.
    bool can_accumulate(std::initializer_list<const Value*> sources) const;
    void accumulate(bool on) { accumulate_ = on; }
    bool accumulates() const { return accumulate_; }
    //! Value of the operand of post-op `index`.
    const Value* operand(size_t index) const;

    //! Arguments for the operands of the first `count` post-ops, in the layouts `pd` wants.
    void bind(const dnnl::primitive_desc_base& pd, size_t count,
              std::vector<Builder::Argument>& arguments) const;
    //! Steps for post-ops from `count` on, in place on `array`, which holds the result.
    void apply_rest(size_t count, const Array& array) const;

  private:
    dnnl::memory::dims operand_dims(size_t index) const {
        return brought_to_rank(builder_.shape(operand(index)), result_.size());
    }

    Builder& builder_;
    const Node& node_;
    std::vector<PostOp> ops_;
    Shape result_;
    bool accumulate_ = false;
};

//! A step y = op(x), element by element; x and y have one layout and may be the same array.
void add_eltwise(Builder& builder, const PostOp& op, const Array& x, const Array& y);

}  // namespace kilter::engine
