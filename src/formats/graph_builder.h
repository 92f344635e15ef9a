// GraphBuilder: how a reader that lowers another format adds operators. Types are inferred as it goes, and what is small
// and constant is computed right away, so that rules see shapes and axes as numbers.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fail.h"
#include "kilter/graph/graph.h"
#include "ops/infer.h"

namespace kilter {

//! Why an operator of another format has no meaning for kilter: it stays opaque.
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

//! The rules of several families, by the operator they are for; `Rule` has the members `op` and `lower`.
template <class Rule>
class RuleTable {
  public:
    RuleTable(std::initializer_list<std::span<const Rule>> families) {
        for (const std::span<const Rule>& family : families)
            for (const Rule& rule : family) rules_.emplace(rule.op, rule.lower);
    }
    //! Null when there is no rule.
    decltype(Rule::lower) find(std::string_view op) const {
        const auto found = rules_.find(op);
        return found == rules_.end() ? nullptr : found->second;
    }

  private:
    std::unordered_map<std::string_view, decltype(Rule::lower)> rules_;
};

class GraphBuilder {
  public:
    explicit GraphBuilder(Graph& graph) : graph_(graph), infer_(graph) {}

    //! Rank and dimensions; these give up when they are not known.
    int rank(const Value* value) const;
    const Dims& dims(const Value* value) const;
    //! Contents of a constant; null when it is not constant.
    const Tensor* constant(const Value* value) const { return graph_.constant(value); }
    //! Contents of a constant of integers, or of a shape that is known; gives up when it is not constant.
    Ints ints(const Value* value) const;
    std::optional<Dims> shape_data(const Value* value) const { return infer_.shape_data(value); }

    //! Adds an operator, infers its types, and computes it right away when it is small and constant.
    Value* emit(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {},
                std::string_view domain = {});
    std::vector<Value*> emit_many(std::string_view op, std::vector<Value*> inputs, size_t outputs,
                                  Attributes attributes = {}, std::string_view domain = {});
    Value* add_constant(Tensor tensor) { return graph_.add_constant(std::move(tensor)); }
    Value* add_ints(const Ints& values) {
        return add_constant(Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
    }
    Value* add_scalar(double value, DType dtype) { return add_constant(Tensor::filled(dtype, {}, value)); }
    Value* cast(Value* value, DType dtype);
    //! As the shapes and indices of ONNX are: 64-bit.
    Value* as_int64(Value* value);
    Value* transpose(Value* value, const Ints& perm);
    //! Between layouts with the channel last and those of ONNX, for any number of spatial axes.
    Value* channels_first(Value* value, int rank = 4);
    Value* channels_last(Value* value, int rank = 4);
    Value* reshape(Value* value, const Ints& shape) { return emit("Reshape", {value, add_ints(shape)}); }
    Value* unsqueeze(Value* value, const Ints& axes) { return emit("Unsqueeze", {value, add_ints(axes)}); }

    Graph& graph() { return graph_; }

  protected:
    //! Operators that are added from now on belong to this operator of the source.
    void begin(std::string name);
    bool is_own(const Node* node) const;
    void infer(const Node& node) { infer_(node); }

    std::vector<Node*> made_;  // since begin()

  private:
    void fold_small(Node& made);

    Graph& graph_;
    NodeInference infer_;
    std::string name_;
    std::map<std::pair<const Value*, Ints>, Value*> transposed_;
    std::unordered_map<const Value*, Value*> wide_;  // what as_int64 made
};

}  // namespace kilter
