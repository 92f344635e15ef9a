#include "passes/rewrite.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace kilter {
namespace {

bool is_dead(const Graph& graph, const Node& node) {
    return std::ranges::all_of(node.outputs(), [&](const Value* value) {
        return value == nullptr || (value->users().empty() && !graph.is_output(value));
    });
}

// Disconnects a dead node and the producers that die with it, so that single-use checks of later matches see
// the truth.
void retire(Graph& graph, Node* node) {
    std::vector<Node*> pending{node};
    while (!pending.empty()) {
        Node* dead = pending.back();
        pending.pop_back();
        if (!is_dead(graph, *dead) || dead->inputs().empty()) continue;
        std::vector<Node*> producers;
        for (const Value* input : dead->inputs())
            if (input != nullptr && input->producer() != nullptr) producers.push_back(input->producer());
        graph.set_inputs(*dead, {});
        pending.insert(pending.end(), producers.begin(), producers.end());
    }
}

bool rewrite_matching(Graph& graph, const std::function<bool(const Node&)>& matches, const Change& change,
                      Visit visit) {
    bool changed = false;
    std::vector<Node*> snapshot;
    std::vector<Node*> owners;
    for (const auto& node : graph.nodes()) {
        if (matches(*node)) snapshot.push_back(node.get());
        if (!node->subgraphs().empty()) owners.push_back(node.get());
    }
    if (visit == Visit::backward) std::ranges::reverse(snapshot);
    // A node without its main output, like a Dropout of which only the mask is read, is left alone by all
    // passes.
    for (Node* node : snapshot)
        if (matches(*node) && node->output() != nullptr && !is_dead(graph, *node) && change(graph, *node))
            changed = true;
    for (Node* owner : owners) {
        bool inside = false;
        for (Graph* body : owner->subgraphs())
            if (rewrite_matching(*body, matches, change, visit)) inside = true;
        if (inside) graph.update_captures(*owner);
        changed = changed || inside;
    }
    if (changed) {
        graph.remove_dead();
        graph.sort();
    }
    return changed;
}

std::vector<Node*> nodes_between(const std::vector<Value*>& inputs, const Value* result) {
    std::vector<Node*> found;
    std::unordered_set<const Value*> seen(inputs.begin(), inputs.end());
    std::vector<const Value*> pending{result};
    while (!pending.empty()) {
        const Value* value = pending.back();
        pending.pop_back();
        if (value == nullptr || value->producer() == nullptr || !seen.insert(value).second) continue;
        found.push_back(value->producer());
        for (const Value* input : value->producer()->inputs()) pending.push_back(input);
    }
    std::ranges::reverse(found);
    return found;
}

}  // namespace

bool is_op(const Node& node, std::string_view op) {
    if (const size_t dot = op.find('.'); dot != std::string_view::npos)
        return node.domain() == op.substr(0, dot) && node.op() == op.substr(dot + 1);
    return node.is(op);
}

bool is_any(const Node& node, std::span<const std::string_view> ops) {
    return std::ranges::any_of(ops, [&](std::string_view op) { return is_op(node, op); });
}

bool is_any(const Node& node, std::initializer_list<std::string_view> ops) {
    return is_any(node, std::span(ops.begin(), ops.size()));
}

bool rewrite(Graph& graph, std::span<const std::string_view> ops, const Change& change, Visit visit) {
    return rewrite_matching(
        graph, [&](const Node& node) { return is_any(node, ops); }, change, visit);
}

bool rewrite(Graph& graph, std::initializer_list<std::string_view> ops, const Change& change, Visit visit) {
    return rewrite(graph, std::span(ops.begin(), ops.size()), change, visit);
}

bool rewrite(Graph& graph, std::string_view op, const Change& change) { return rewrite(graph, {op}, change); }

bool rewrite_all(Graph& graph, const Change& change) {
    return rewrite_matching(
        graph, [](const Node&) { return true; }, change, Visit::forward);
}

void substitute(Graph& graph, Value* from, Value* to) {
    if (to->type.dtype == DType::undefined) to->type.dtype = from->type.dtype;
    if (!to->type.shape) to->type.shape = from->type.shape;
    Node* producer = from->producer();
    graph.replace_uses(from, to);
    if (producer != nullptr) retire(graph, producer);
}

void take_over(Graph& graph, Node& main, Node& absorbed) {
    Value* result = absorbed.output();
    Value* between = main.output();
    add_origins(main, absorbed);
    graph.set_output(absorbed, 0, nullptr);
    graph.set_output(main, 0, result);
    retire(graph, &absorbed);
    graph.remove_value(between);
}

Node* replace_with(Graph& graph, Value* result, std::string_view op, std::vector<Value*> inputs,
                   Attributes attributes, std::string_view domain) {
    Node* last = result->producer();
    const std::vector<Node*> replaced = nodes_between(inputs, result);
    graph.set_output(*last, static_cast<size_t>(result->producer_index()), nullptr);
    Node* node = graph.add_node(op, std::move(inputs), {result}, std::move(attributes), last->name, domain);
    for (const Node* old : replaced) add_origins(*node, *old);
    retire(graph, last);
    return node;
}

void add_origins(Node& into, const Node& from) {
    const auto add = [&](const std::string& name) {
        if (!name.empty() && name != into.name && std::ranges::find(into.origins, name) == into.origins.end())
            into.origins.push_back(name);
    };
    for (const std::string& name : from.origins) add(name);
    add(from.name);
}

const Tensor* constant_of(const Graph& graph, const Value* value) {
    while (value != nullptr && value->outer() != nullptr) value = value->outer();
    return graph.constant(value);
}

Node* produced_by(const Value* value, std::string_view op) {
    if (value == nullptr || value->producer() == nullptr || !is_op(*value->producer(), op)) return nullptr;
    return value->producer();
}

Node* only_user(const Graph& graph, const Value* value) {
    return value != nullptr && graph.has_single_use(value) ? value->users().front() : nullptr;
}

Value* other_input(const Node& node, const Value* value) {
    if (node.inputs().size() != 2 || node.input(0) == node.input(1)) return nullptr;
    if (node.input(0) == value) return node.input(1);
    return node.input(1) == value ? node.input(0) : nullptr;
}

std::optional<double> scalar_of(const Graph& graph, const Value* value) {
    const Tensor* tensor = constant_of(graph, value);
    if (tensor == nullptr || tensor->size() != 1 ||
        !(kilter::is_float(tensor->dtype()) || is_integer(tensor->dtype())))
        return std::nullopt;
    return tensor->to_doubles().front();
}

std::optional<double> scalar_beside(const Graph& graph, const Value* value, const Value* beside) {
    const Tensor* tensor = constant_of(graph, value);
    if (tensor == nullptr || (tensor->rank() > 0 && tensor->rank() > rank_of(beside))) return std::nullopt;
    return scalar_of(graph, value);
}

std::optional<ScalarOperand> match_scalar(const Graph& graph, const Node* node, std::string_view op) {
    if (node == nullptr || !is_op(*node, op) || node->inputs().size() != 2) return std::nullopt;
    Value* a = node->input(0);
    Value* b = node->input(1);
    if (constant_of(graph, a) == nullptr)
        if (const auto c = scalar_beside(graph, b, a)) return ScalarOperand{a, *c};
    if ((op == "Mul" || op == "Add") && constant_of(graph, b) == nullptr)
        if (const auto c = scalar_beside(graph, a, b)) return ScalarOperand{b, *c};
    return std::nullopt;
}

ScalarOperand strip_scale(const Graph& graph, Value* value) {
    if (const auto mul = match_scalar(graph, value->producer(), "Mul")) return *mul;
    if (const auto div = match_scalar(graph, value->producer(), "Div"); div && div->c != 0)
        return {div->x, 1.0 / div->c};
    return {value, 1.0};
}

bool near(double a, double b) { return std::abs(a - b) <= 2e-4 * std::max(std::abs(a), std::abs(b)); }

std::optional<std::vector<int64_t>> int_constants(const Graph& graph, const Value* value,
                                                  std::optional<std::vector<int64_t>> absent) {
    if (value == nullptr) return absent;
    const Tensor* tensor = constant_of(graph, value);
    if (tensor == nullptr || !is_integer(tensor->dtype())) return std::nullopt;
    return tensor->to_ints();
}

int rank_of(const Value* value) {
    return value != nullptr && value->type.shape ? static_cast<int>(value->type.shape->size()) : -1;
}

bool is_float(const Value* value) { return value != nullptr && kilter::is_float(value->type.dtype); }

bool same_shape(const Value* a, const Value* b) {
    return a->type.shape && b->type.shape && *a->type.shape == *b->type.shape;
}

bool broadcasts_into(const Dims& from, const Dims& to) {
    if (from.size() > to.size()) return false;
    const size_t shift = to.size() - from.size();
    for (size_t axis = 0; axis < from.size(); ++axis)
        if (!(from[axis] == Dim(1)) && !(from[axis] == to[axis + shift])) return false;
    return true;
}

Value* add_scalar(Graph& graph, double number, const Value* like) {
    const DType dtype = is_float(like) ? like->type.dtype : DType::f32;
    return graph.add_constant(Tensor::filled(dtype, {}, number));
}

Value* add_ints(Graph& graph, const std::vector<int64_t>& numbers) {
    return graph.add_constant(Tensor::of<int64_t>({static_cast<int64_t>(numbers.size())}, numbers));
}

}  // namespace kilter
