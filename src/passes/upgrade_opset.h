// Rewrites one operator of an older opset to the form it has in kCanonicalOpset.
// Rules live by family in upgrade_*.cc; upgrade_opset.cc lists them.
#pragma once

#include <string_view>
#include <vector>

#include "kilter/graph/graph.h"
#include "ops/infer.h"

namespace kilter {

class Upgrade {
  public:
    Upgrade(Graph& graph, Node& node, int64_t opset, NodeInference& infer)
        : graph_(graph), node_(&node), opset_(opset), infer_(infer) {}

    //! Applies the rule of the operator, if it has one, then infers the types of its outputs.
    //! False when the operator was replaced: it makes no outputs any more and is to be removed.
    bool run();

    // For the rules.
    Graph& graph() { return graph_; }
    Node& node() { return *node_; }
    Attributes& attributes() { return node_->attributes; }
    int64_t opset() const { return opset_; }
    int rank(size_t input) const;  // -1 when unknown
    //! The element type of an input; f32 when unknown, as in almost every model.
    DType dtype(size_t input) const;
    //! The contents of an input, also when a sub-graph captures it; null when they are not constant.
    const Tensor* constant(size_t input) const;

    Value* integers(std::string_view purpose, const std::vector<int64_t>& values);
    Value* constant(std::string_view purpose, Tensor tensor);
    //! A new operator before the final one; its result, with inferred type.
    Value* add(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {});
    //! Replaces the operator: the new one has its name and makes its first output.
    void finish(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {});
    //! The operator was a constant all along.
    void finish_constant(Tensor tensor);
    //! Attribute `name` (a list of integers) becomes input `index`.
    void attribute_to_input(std::string_view name, size_t index);

  private:
    Graph& graph_;
    Node* node_;
    bool finished_ = false;
    int64_t opset_;
    NodeInference& infer_;
};

using UpgradeRule = void (*)(Upgrade&);

// upgrade_inputs.cc: attributes that became inputs.
void upgrade_clip(Upgrade&);
void upgrade_dropout(Upgrade&);
void upgrade_pad(Upgrade&);
void upgrade_slice(Upgrade&);
void upgrade_split(Upgrade&);
void upgrade_squeeze(Upgrade&);
void upgrade_reduce(Upgrade&);
void upgrade_top_k(Upgrade&);
void upgrade_reshape(Upgrade&);
void upgrade_dft(Upgrade&);
void upgrade_constant(Upgrade&);

// upgrade_meaning.cc: operators whose meaning or name changed.
void upgrade_softmax(Upgrade&);
void upgrade_upsample(Upgrade&);
void upgrade_resize(Upgrade&);
void upgrade_group_normalization(Upgrade&);
void upgrade_batch_normalization(Upgrade&);
void upgrade_binary(Upgrade&);
void upgrade_prelu(Upgrade&);
void upgrade_gemm(Upgrade&);
void upgrade_cast(Upgrade&);
void upgrade_scatter(Upgrade&);
void upgrade_roi_align(Upgrade&);
void upgrade_grid_sample(Upgrade&);
void upgrade_concat(Upgrade&);
void upgrade_recurrent(Upgrade&);
void refuse_old_form(Upgrade&);

// upgrade_scan.cc
void upgrade_scan(Upgrade&);

}  // namespace kilter
