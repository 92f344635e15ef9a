// Graph: operators (Node) connected by values (Value), with ONNX meaning.
// The graph owns its nodes and values; pointers to them stay valid until they are removed. Not thread-safe while edited.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kilter/graph/attributes.h"
#include "kilter/graph/type.h"

namespace kilter {

class Graph;
class Node;

//! Domain of kilter's own fused operators. The default ONNX domain is the empty string.
inline constexpr std::string_view kKilterDomain = "kilter";

//! The opset whose operator forms passes, shape rules and kernels understand; `upgrade_opset` brings older models there.
inline constexpr int kCanonicalOpset = 21;

class Value {
  public:
    const std::string& name() const { return name_; }
    int id() const { return id_; }  // dense: 0 … graph.value_limit()-1, stable while the value lives
    ValueType type;
    std::string doc;
    std::string
        foreign;  // serialized parts of the source value (for constants: of the tensor) that kilter does not interpret

    Node* producer() const { return producer_; }  // null for inputs, constants and captured values
    int producer_index() const { return producer_index_; }
    //! One entry for every time a node reads the value, directly or from inside a sub-graph.
    const std::vector<Node*>& users() const { return users_; }

    bool is_input() const { return is_input_; }
    bool is_constant() const { return !constant_.empty(); }
    //! Value of the enclosing graph that this one stands for, inside a sub-graph; null elsewhere.
    Value* outer() const { return outer_; }

    //! Constants of old ONNX files that are also listed as inputs; only the writer cares.
    bool listed_as_input = false;

  private:
    friend class Graph;
    std::string name_;
    int id_ = -1;
    Node* producer_ = nullptr;
    int producer_index_ = -1;
    std::vector<Node*> users_;
    bool is_input_ = false;
    Tensor constant_;
    Value* outer_ = nullptr;
};

class Node {
  public:
    const std::string& op() const { return op_; }
    const std::string& domain() const { return domain_; }
    //! Is this the operator `op` of the default domain?
    bool is(std::string_view op) const { return op_ == op && domain_.empty(); }
    //! Is this kilter's own operator `op`?
    bool is_kilter(std::string_view op) const { return op_ == op && domain_ == kKilterDomain; }

    std::string name;  // may be empty or repeated: file formats allow it
    std::string doc;
    std::string overload;  // ONNX function overload
    std::vector<std::string>
        origins;            // names of the operators of the source model that this one replaced by fusion
    Attributes attributes;  // sub-graphs live here; change them through Graph only when they capture values
    std::string foreign;    // serialized parts of the source node that kilter does not interpret

    std::span<Value* const> inputs() const { return inputs_; }
    std::span<Value* const> outputs() const { return outputs_; }
    //! Null when the optional input is absent or the index is out of range; same for outputs.
    Value* input(size_t index) const { return index < inputs_.size() ? inputs_[index] : nullptr; }
    Value* output(size_t index = 0) const { return index < outputs_.size() ? outputs_[index] : nullptr; }

    //! Sub-graphs in the order of the attributes (If, Loop, Scan).
    std::vector<Graph*> subgraphs() const;

  private:
    friend class Graph;
    std::string op_;
    std::string domain_;
    std::vector<Value*> inputs_;
    std::vector<Value*> outputs_;
};

//! "operator 'conv1' (Conv)": how every error names a node.
std::string describe(const Node& node);

class Graph {
  public:
    struct Output {
        std::string name;  // the name users fetch, kept when passes replace the value
        Value* value = nullptr;
        ValueType type;  // as declared by the model
        std::string doc;
        std::string foreign;
    };

    Graph();
    ~Graph();
    Graph(Graph&&) noexcept;
    Graph& operator=(Graph&&) noexcept;
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    //! Deep copy of structure; constants share their storage. A sub-graph's captures must be re-bound by the caller.
    Graph clone() const;

    std::string name;
    std::string doc;
    std::string foreign;  // serialized parts of the source graph that kilter does not interpret

    // Building. An empty name gets a fresh unique one; a taken name throws Error.
    Value* add_value(std::string name = {}, ValueType type = {});
    Value* add_input(std::string name, ValueType type);
    Value* add_constant(Tensor tensor, std::string name = {});
    void add_output(Value* value, std::string name = {});  // name defaults to the value's
    void add_output(Output output);
    //! Inside a sub-graph: a value that stands for `outer` of the enclosing graph.
    Value* add_capture(std::string name, Value* outer);
    //! Binds a captured value anew; update_captures() of the enclosing graph must follow unless add_node does it.
    void set_outer(Value* capture, Value* outer);
    Node* add_node(std::string_view op, std::vector<Value*> inputs, std::vector<Value*> outputs,
                   Attributes attributes = {}, std::string name = {}, std::string_view domain = {});
    //! The common case: one new output value, which is returned.
    Value* add(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {},
               std::string name = {}, std::string_view domain = {});
    //! A name that no value has yet, starting with `stem`.
    std::string fresh_name(std::string_view stem);

    // Editing. Users, producers and outputs stay consistent.
    void set_input(Node& node, size_t index, Value* value);  // grows the inputs when needed
    void set_inputs(Node& node, std::vector<Value*> inputs);
    void set_output(Node& node, size_t index, Value* value);  // `value` must have no producer
    void set_op(Node& node, std::string_view op, std::string_view domain = {});
    void replace_uses(Value* from, Value* to);           // readers and graph outputs
    void replace_constant(Value* value, Tensor tensor);  // for every user of `value`
    void make_constant(Value* value,
                       Tensor tensor);  // `value` loses its producer (the node keeps its other outputs)
    void rename(Value* value, std::string name);
    void set_output_value(size_t index, Value* value);
    void remove_node(Node* node);                     // its outputs must be unused; they are removed too
    void remove_nodes(std::span<Node* const> nodes);  // the same for many, in one sweep
    void remove_value(Value* value);                  // must be unused and have no producer
    void remove_input(Value* value);                  // must be unused
    //! Removes nodes none of whose outputs is used, then unused constants. Returns the number of nodes removed.
    size_t remove_dead();
    //! Stable topological order; throws Error naming the nodes of a cycle.
    void sort();
    //! Re-registers what the sub-graphs of `node` capture as uses by `node`. Called by add_node; call after editing captures.
    void update_captures(Node& node);
    //! Inside a sub-graph: `inner` stands for another value of the enclosing graph. Call update_captures on the owner afterwards.
    void bind_capture(Value* inner, Value* outer);

    // Reading. Nodes are in topological order after sort().
    const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
    std::span<Value* const> inputs() const { return inputs_; }
    const std::vector<Output>& outputs() const { return outputs_; }
    std::span<Value* const> captures() const { return captures_; }
    std::vector<Value*> constants() const;
    std::vector<Value*> values() const;
    int value_limit() const;  // greater than every Value::id()
    Value* find(std::string_view name) const;
    const Tensor* constant(const Value* value) const;  // null when `value` is null or not constant
    bool is_output(const Value* value) const;
    bool has_single_use(const Value* value) const;  // exactly one reader, and not an output of the graph
    size_t count(std::string_view op, std::string_view domain = {}) const;

  private:
    void link(Node* node, Value* value);
    void unlink(Node* node, Value* value);
    void detach(Node* node);  // forgets its inputs, outputs and captures

    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<std::unique_ptr<Value>> values_;  // indexed by id, null where removed
    std::unordered_map<std::string, Value*> by_name_;
    std::vector<Value*> inputs_;
    std::vector<Output> outputs_;
    std::vector<Value*> captures_;
    int next_fresh_ = 0;
};

//! A function of a model: a body that nodes of (domain, name) stand for. Attribute references inside are bound at the call.
struct Function {
    std::string domain, name, overload, doc;
    std::vector<std::string> attributes;  // names without default
    Attributes defaults;                  // names with default
    std::vector<std::pair<std::string, int64_t>> opsets;
    Graph body;
    std::string foreign;
};

//! A model file: the graph and all that a format keeps around it.
struct Model {
    Graph graph;
    std::vector<std::pair<std::string, int64_t>> opsets;  // domain, version; the default domain is ""
    std::vector<Function> functions;
    int64_t ir_version = 10;
    int64_t model_version = 0;
    std::string producer_name, producer_version, domain, doc;
    std::vector<std::pair<std::string, std::string>> metadata;
    std::string foreign;  // serialized fields of the source that kilter does not interpret
    std::string source;   // file it came from, for messages

    int64_t opset(std::string_view domain_name = {}) const;  // 0 when not imported
};

//! The deep copy of a model; constants share their storage.
Model clone(const Model& model);

//! Checks every invariant: names, links, arity, attribute types, acyclicity, declared types. Throws Error that says what and where.
void verify(const Graph& graph);

//! One line per operator, inputs and outputs with types; what `kilter inspect --graph` prints.
std::string print(const Graph& graph);

//! Shape and type inference over the whole graph: fills Value::type. Throws Error at a contradiction; leaves unknown what it cannot know.
//! Runs the rules of the operators in src/ops; needs canonical operator forms.
void infer_types(Graph& graph);

}  // namespace kilter
