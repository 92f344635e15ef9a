// Lowering: one MXNet node at a time becomes operators with ONNX meaning. The rules of a family of operators are one file; a
// rule sees the node through this class.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "formats/graph_builder.h"
#include "formats/mxnet/parameters.h"
#include "formats/mxnet/symbol.h"

namespace kilter::mxnet {

class Lowering : public GraphBuilder {
  public:
    explicit Lowering(Graph& graph) : GraphBuilder(graph) {}

    //! Runs the rule for `node`; when there is none, or it gives up, the node becomes opaque. Returns the values of its outputs.
    std::vector<Value*> lower(const SymbolNode& node, std::vector<Value*> inputs, size_t outputs);

    // The node that is being lowered.
    const SymbolNode& node() const { return *node_; }
    Parameters parameters() const { return Parameters(*node_); }
    size_t size() const { return inputs_.size(); }
    //! Gives up when the node has no such input.
    Value* input(size_t index = 0) const;
    std::span<Value* const> inputs() const { return inputs_; }
    //! An axis that may count from the end, as a number from 0; gives up when the rank is not known.
    int64_t axis(int64_t axis, const Value* value) const;
    //! A number beside `value`, in its element type; gives up when it is not known, or the number does not fit it.
    Value* scalar_like(double number, const Value* value);
    //! Dimensions of `value`, as a vector that is computed when the model runs.
    Value* shape_of(Value* value) { return emit("Shape", {value}); }

    //! The operator that makes `value` is the one users know by the node's name.
    void name_main(Value* value);
    //! The next output of the node; a scalar becomes an array of one element, since MXNet's arrays have an axis at least.
    //! Without name_main, the operator that makes the first gets the node's name.
    void result(Value* value);

  private:
    void make_opaque(const std::string& reason, size_t outputs);

    const SymbolNode* node_ = nullptr;
    std::vector<Value*> inputs_, outputs_;
    Node* main_ = nullptr;
};

using LowerFunction = void (*)(Lowering&);

struct LowerRule {
    std::string_view op;
    LowerFunction lower;
};

//! Null when there is no rule.
LowerFunction find_rule(std::string_view op);

// The families, one file each.
std::span<const LowerRule> attention_rules();
std::span<const LowerRule> convolution_rules();
std::span<const LowerRule> elementwise_rules();
std::span<const LowerRule> indexing_rules();
std::span<const LowerRule> normalization_rules();
std::span<const LowerRule> pooling_rules();
std::span<const LowerRule> product_rules();
std::span<const LowerRule> reduction_rules();
std::span<const LowerRule> resize_rules();
std::span<const LowerRule> shape_rules();

//! "NHWC" and its like: does the channel come last? Gives up on layouts of other kinds.
bool is_channels_last(const Lowering& lowering);

}  // namespace kilter::mxnet
