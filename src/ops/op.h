// What kilter knows about an operator: schema, shape rule and reference kernel, registered from one file per operator.
// Rules and kernels see canonical forms only (opset kCanonicalOpset and newer); `passes/upgrade_opset` makes them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kilter/graph/graph.h"

namespace kilter {

enum class AttributeKind { integer, real, text, tensor, graph, integers, reals, texts };

struct AttributeSpec {
    std::string_view name;
    AttributeKind kind;
    bool required = false;
};

//! What a shape rule sees: types and, where known, contents of the inputs. It sets the types of the outputs.
class InferContext {
  public:
    virtual ~InferContext() = default;
    explicit InferContext(const Node& node) : node_(node) {}

    const Node& node() const { return node_; }
    const Attributes& attributes() const { return node_.attributes; }
    size_t input_count() const { return node_.inputs().size(); }
    size_t output_count() const { return node_.outputs().size(); }
    bool has_input(size_t index) const { return node_.input(index) != nullptr; }

    virtual const ValueType& input(size_t index) const = 0;
    //! The whole tensor, when it is constant.
    virtual const Tensor* constant(size_t index) const = 0;
    //! Contents of an integer tensor of rank 0 or 1, entries possibly symbolic ("batch"): what shape arithmetic needs.
    virtual std::optional<Dims> shape_data(size_t index) const = 0;

    virtual void set_output(size_t index, ValueType type) = 0;
    virtual void set_shape_data(size_t index, Dims data) = 0;
    //! Types of a sub-graph's outputs when its inputs have the given types.
    virtual std::vector<ValueType> infer_subgraph(const Graph& graph,
                                                  const std::vector<ValueType>& inputs) = 0;

    // Conveniences.
    DType dtype(size_t index) const { return has_input(index) ? input(index).dtype : DType::undefined; }
    const std::optional<Dims>& shape(size_t index) const;  // absent as well when the input is absent
    int rank(size_t index) const;                          // -1 when unknown
    //! Integer contents when they are all known numbers.
    std::optional<std::vector<int64_t>> ints(size_t index) const;
    void set_output(size_t index, DType dtype, Dims shape) {
        set_output(index, ValueType(dtype, std::move(shape)));
    }
    void set_output(size_t index, DType dtype);  // rank unknown
    void same_as_input(size_t output = 0, size_t input = 0) {
        if (has_input(input)) set_output(output, this->input(input));
    }

  private:
    const Node& node_;
};

//! What a reference kernel sees: input tensors, attributes; it fills the outputs.
class KernelContext {
  public:
    virtual ~KernelContext() = default;
    explicit KernelContext(const Node& node) : node_(node) {}

    const Node& node() const { return node_; }
    const Attributes& attributes() const { return node_.attributes; }
    size_t input_count() const { return node_.inputs().size(); }
    size_t output_count() const { return node_.outputs().size(); }
    bool has_input(size_t index) const { return node_.input(index) != nullptr; }
    bool wants_output(size_t index) const { return node_.output(index) != nullptr; }

    virtual const Tensor& input(size_t index) const = 0;
    //! Memory for output `index`; the caller may have prepared a buffer of just this type and shape. Not initialised.
    virtual Tensor& output(size_t index, DType dtype, const Shape& shape) = 0;
    //! Output `index` is this tensor (shares storage).
    virtual void set_output(size_t index, Tensor tensor) = 0;
    //! Runs a sub-graph of this node; captured values are found by the executor.
    virtual std::vector<Tensor> run_subgraph(const Graph& graph, std::vector<Tensor> inputs) = 0;

  private:
    const Node& node_;
};

using InferFunction = void (*)(InferContext&);
using KernelFunction = void (*)(KernelContext&);

inline constexpr int kVariadic = 1 << 20;

struct OpDefinition {
    std::string_view name;
    std::string_view domain = {};
    int min_inputs = 1, max_inputs = 1;
    int min_outputs = 1, max_outputs = 1;
    std::vector<AttributeSpec> attributes = {};
    InferFunction infer = nullptr;    // null: types stay unknown until run
    KernelFunction kernel = nullptr;  // the scalar, obviously correct one; null: not executable
    bool deterministic = true;        // false: random operators, never folded
    bool tensors_only = true;         // false: inputs may be sequences and absent optionals
};

//! Null when kilter does not know the operator.
const OpDefinition* find_op(std::string_view op, std::string_view domain = {});
const OpDefinition* find_op(const Node& node);
std::vector<const OpDefinition*> all_ops();  // sorted by domain and name

struct RegisterOp {
    explicit RegisterOp(OpDefinition definition);
};

//! At namespace scope of an operator's file: KILTER_OP({.name = "Relu", …});
#define KILTER_OP_JOIN2(a, b) a##b
#define KILTER_OP_JOIN(a, b) KILTER_OP_JOIN2(a, b)
#define KILTER_OP(...)                                             \
    static const ::kilter::RegisterOp KILTER_OP_JOIN(register_op_, \
                                                     __LINE__)(::kilter::OpDefinition __VA_ARGS__)

//! Checks inputs, outputs and attributes of a known operator against its definition; throws Error without naming the node.
void verify_schema(const Node& node);

//! Runs one rule, after verify_schema; errors carry the node's description. Unknown operators leave their outputs unknown.
void infer_node(InferContext& context);

// Shared by many rules and kernels.
int64_t normalize_axis(int64_t axis, int64_t rank,
                       std::string_view what = "axis");  // throws when out of range
//! The dimension min(dim, limit), with a name that `broadcast` understands; `dim` is named, `limit` above one.
Dim clamped_dim(const Dim& dim, int64_t limit);
Dims broadcast(const Dims& a, const Dims& b);  // throws when incompatible
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace kilter
