// Lowering: one TensorFlow node at a time becomes operators with ONNX meaning. The rules of a family of operators are
// one file; a rule sees the node through this class.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "formats/graph_builder.h"
#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

class Lowering : public GraphBuilder {
  public:
    Lowering(const TfGraph& source, Graph& graph) : GraphBuilder(graph), source_(source) {}

    // Driving it: rules do not use these.
    Value* find(const TfInput& input) const;  // null when it is not lowered (or is what a loop feeds back)
    void define(const TfInput& output, Value* value);
    //! Runs the rule for `node`; when there is none, or it gives up, the node becomes opaque with `ports` outputs.
    //! Outputs that are defined already, because they are fed, stay what they are.
    void lower(const TfNode& node, int ports);

    // The node that is being lowered.
    const TfNode& node() const { return *node_; }
    const TfAttributes& attributes() const { return node_->attributes; }
    //! Data inputs.
    size_t size() const { return inputs_.size(); }
    //! Gives up when the node has no such input.
    Value* input(size_t index) const;
    std::span<Value* const> inputs() const { return inputs_; }
    //! Element type that an attribute names; gives up when kilter has no such type.
    DType dtype(std::string_view attribute = "T") const;
    //! Contents of a constant of integers; gives up when it is not constant.
    Ints ints(size_t index) const { return GraphBuilder::ints(input(index)); }

    // What it becomes.
    //! A shape, size or index as int32 or int64 by the attribute; i32 when absent.
    Value* as_index(Value* value, std::string_view attribute);
    //! The operator that makes `value` is the one users know by the node's name, or by that of another one whose work
    //! it does.
    void name_main(Value* value, std::string_view name = {});
    //! Output `port` of the node. Without name_main, the operator that makes output 0 gets the node's name.
    void result(Value* value, int port = 0);
    //! Does anybody read that output?
    bool is_read(int port) const { return port < ports_; }

    const TfGraph& source() const { return source_; }

  private:
    void make_opaque(const std::string& reason);

    const TfGraph& source_;
    std::map<std::pair<std::string, int>, Value*> values_;
    std::unordered_set<const Value*> named_;  // have the name of a node already
    const TfNode* node_ = nullptr;
    std::vector<Value*> inputs_;
    std::vector<Value*> outputs_;  // by port
    Node* main_ = nullptr;
    std::string main_name_;
    int ports_ = 0;
};

using LowerFunction = void (*)(Lowering&);

struct LowerRule {
    std::string_view op;
    LowerFunction lower;
};

//! Null when there is no rule.
LowerFunction find_rule(std::string_view op);

// The families, one file each.
std::span<const LowerRule> convolution_rules();
std::span<const LowerRule> detection_rules();
std::span<const LowerRule> elementwise_rules();
std::span<const LowerRule> flow_rules();
std::span<const LowerRule> indexing_rules();
std::span<const LowerRule> loop_rules();
std::span<const LowerRule> normalization_rules();
std::span<const LowerRule> pooling_rules();
std::span<const LowerRule> product_rules();
std::span<const LowerRule> reduction_rules();
std::span<const LowerRule> resize_rules();
std::span<const LowerRule> shape_rules();
std::span<const LowerRule> space_rules();

//! "NHWC" and its like: does the channel come last? Gives up on layouts of other kinds.
bool is_channels_last(const Lowering& lowering);

}  // namespace kilter::tensorflow
