// Lowering: one TensorFlow node at a time becomes operators with ONNX meaning. The rules of a family of operators are
// one file; a rule sees the node through this class.
#pragma once

#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/fail.h"
#include "formats/tensorflow/tf_graph.h"
#include "kilter/graph/graph.h"
#include "ops/infer.h"

namespace kilter::tensorflow {

//! Why a node has no meaning for kilter: it stays opaque.
class NotLowered : public Error {
  public:
    using Error::Error;
};

template <class... Args>
[[noreturn]] void not_lowered(fmt::format_string<Args...> format, Args&&... args) {
    throw NotLowered(fmt::format(format, std::forward<Args>(args)...));
}

using Ints = std::vector<int64_t>;

//! {{"axis", int64_t{1}}, …} as Attributes.
Attributes attributes_of(std::initializer_list<std::pair<std::string_view, AttributeValue>> entries);

class Lowering {
  public:
    Lowering(const TfGraph& source, Graph& graph) : source_(source), graph_(graph), infer_(graph) {}

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
    //! Rank and dimensions; these give up when they are not known.
    int rank(const Value* value) const;
    const Dims& dims(const Value* value) const;
    //! Contents of a constant; null when it is not constant.
    const Tensor* constant(const Value* value) const { return graph_.constant(value); }
    //! Contents of a constant of integers; gives up when it is not constant.
    Ints ints(size_t index) const;
    std::optional<Dims> shape_data(const Value* value) const { return infer_.shape_data(value); }

    // What it becomes.
    //! Adds an operator, infers its types, and computes it right away when it is small and constant.
    Value* emit(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {});
    std::vector<Value*> emit_many(std::string_view op, std::vector<Value*> inputs, size_t outputs,
                                  Attributes attributes = {});
    Value* add_constant(Tensor tensor);
    Value* add_ints(const Ints& values) {
        return add_constant(Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
    }
    Value* add_scalar(double value, DType dtype) { return add_constant(Tensor::filled(dtype, {}, value)); }
    Value* cast(Value* value, DType dtype);
    //! As the shapes and indices of ONNX are: 64-bit.
    Value* as_int64(Value* value);
    //! A shape, size or index as int32 or int64 by the attribute; i32 when absent.
    Value* as_index(Value* value, std::string_view attribute);
    Value* transpose(Value* value, const Ints& perm);
    //! Between the layout of TensorFlow and that of ONNX, for any number of spatial axes.
    Value* channels_first(Value* value, int rank = 4);
    Value* channels_last(Value* value, int rank = 4);
    Value* reshape(Value* value, const Ints& shape);
    Value* unsqueeze(Value* value, const Ints& axes);
    //! The operator that makes `value` is the one users know by the node's name, or by that of another one whose work
    //! it does.
    void name_main(Value* value, std::string_view name = {});
    //! Output `port` of the node. Without name_main, the operator that makes output 0 gets the node's name.
    void result(Value* value, int port = 0);
    //! Does anybody read that output?
    bool is_read(int port) const { return port < ports_; }

    Graph& graph() { return graph_; }
    const TfGraph& source() const { return source_; }

  private:
    void make_opaque(const std::string& reason);
    void fold_small(Node& made);

    const TfGraph& source_;
    Graph& graph_;
    NodeInference infer_;
    std::map<std::pair<std::string, int>, Value*> values_;
    std::unordered_set<const Value*> named_;  // have the name of a node already
    std::map<std::pair<const Value*, Ints>, Value*> transposed_;
    std::unordered_map<const Value*, Value*> wide_;  // what as_int64 made
    const TfNode* node_ = nullptr;
    std::vector<Value*> inputs_;
    std::vector<Value*> outputs_;  // by port
    std::vector<Node*> made_;
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
std::span<const LowerRule> elementwise_rules();
std::span<const LowerRule> flow_rules();
std::span<const LowerRule> indexing_rules();
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
