// The rewrite driver and the small vocabulary that passes share to match and replace operators.
// Inside a rewrite nodes are never freed: what a change leaves without readers is only disconnected, and
// removed at the end.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kilter/graph/graph.h"

namespace kilter {

//! "Conv" is the operator of the default domain, "kilter.Conv" the one of kilter's domain.
bool is_op(const Node& node, std::string_view op);
bool is_any(const Node& node, std::span<const std::string_view> ops);
bool is_any(const Node& node, std::initializer_list<std::string_view> ops);

enum class Visit { forward, backward };

//! Calls `change` on every living node of the given operators, in (or against) topological order, here and in
//! sub-graphs. `change` says whether it changed something. Removes what died and sorts; returns whether
//! anything changed.
using Change = std::function<bool(Graph&, Node&)>;
bool rewrite(Graph& graph, std::span<const std::string_view> ops, const Change& change,
             Visit visit = Visit::forward);
bool rewrite(Graph& graph, std::initializer_list<std::string_view> ops, const Change& change,
             Visit visit = Visit::forward);
bool rewrite(Graph& graph, std::string_view op, const Change& change);
//! The same for every node.
bool rewrite_all(Graph& graph, const Change& change);

// Replacing.

//! Readers of `from` read `to` instead; the producer of `from`, and what only it needed, is disconnected.
void substitute(Graph& graph, Value* from, Value* to);
//! `main` now produces the output of `absorbed`, its only reader, and remembers its name.
void take_over(Graph& graph, Node& main, Node& absorbed);
//! A new node makes `result` from `inputs`. It takes the name of the operator that made `result` and
//! remembers the names of all operators between `inputs` and `result`.
Node* replace_with(Graph& graph, Value* result, std::string_view op, std::vector<Value*> inputs,
                   Attributes attributes = {}, std::string_view domain = {});
//! Remembers that `into` does the work of `from`.
void add_origins(Node& into, const Node& from);

// Matching.

//! Contents of a constant, also when a sub-graph captures it from outside; null otherwise.
const Tensor* constant_of(const Graph& graph, const Value* value);
//! The producer when it is this operator; null otherwise.
Node* produced_by(const Value* value, std::string_view op);
//! The only reader when there is just one and the value is no output of the graph; null otherwise.
Node* only_user(const Graph& graph, const Value* value);
//! For a node with two inputs: the one that is not `value`; null when `value` is not read or read twice.
Value* other_input(const Node& node, const Value* value);
//! The number in a constant of one element that cannot raise the rank of `beside`.
std::optional<double> scalar_beside(const Graph& graph, const Value* value, const Value* beside);
//! The number in a constant of one element and any rank.
std::optional<double> scalar_of(const Graph& graph, const Value* value);
//! x and c where `node` computes x (op) c for a scalar constant c; both orders when `op` is commutative.
struct ScalarOperand {
    Value* x = nullptr;
    double c = 0;
};
std::optional<ScalarOperand> match_scalar(const Graph& graph, const Node* node, std::string_view op);
//! x and k where `value` is k·x, spelled as Mul or Div by a scalar constant; k = 1 and x = value otherwise.
ScalarOperand strip_scale(const Graph& graph, Value* value);
//! Equal up to the precision in which models spell their constants (16-bit floats included).
bool near(double a, double b);

//! Integers of a constant tensor; nothing when `value` is not constant. An absent input gives `absent`.
std::optional<std::vector<int64_t>> int_constants(const Graph& graph, const Value* value,
                                                  std::optional<std::vector<int64_t>> absent = std::nullopt);
int rank_of(const Value* value);  // -1 when unknown
bool is_float(const Value* value);
//! Both shapes are known and provably equal.
bool same_shape(const Value* a, const Value* b);
//! Provably: a tensor of shape `from` broadcasts to `to` without enlarging it.
bool broadcasts_into(const Dims& from, const Dims& to);
//! A scalar of `like`'s element type (f32 when that is unknown).
Value* add_scalar(Graph& graph, double number, const Value* like);
Value* add_ints(Graph& graph, const std::vector<int64_t>& numbers);

}  // namespace kilter
