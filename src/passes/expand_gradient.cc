#include "passes/expand_gradient.h"

#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

class Differentiation {
  public:
    Differentiation(Graph& graph, const std::vector<Value*>& sources) : graph_(graph) {
        sources_.insert(sources.begin(), sources.end());
    }

    void run(Value* y) {
        visit(y);
        gradients_[y] = filled_like(y, 1);
        for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
            Value* gradient = gradients_[(*node)->output(0)];
            if (gradient != nullptr) propagate(**node, gradient);
        }
    }

    Value* gradient_of(Value* x) {
        Value* found = gradients_[x];
        return found != nullptr ? found : filled_like(x, 0);
    }

  private:
    // Producers before their readers; what only leads to other values than the sources is constant here.
    bool visit(Value* value) {
        if (sources_.contains(value)) return true;
        Node* node = value->producer();
        if (node == nullptr) return false;
        const auto [entry, first] = depends_.try_emplace(node, false);
        if (!first) return entry->second;
        bool depends = false;
        for (Value* input : node->inputs())
            if (input != nullptr && visit(input)) depends = true;
        if (depends) order_.push_back(node);
        return depends_[node] = depends;
    }

    Value* filled_like(Value* value, double number) {
        Attributes attributes;
        attributes.set("value", Tensor::filled(value->type.dtype, {1}, number));
        return graph_.add("ConstantOfShape", {graph_.add("Shape", {value})}, std::move(attributes));
    }

    void accumulate(const Node& node, size_t index, Value* gradient) {
        Value* input = node.input(index);
        if (!visit(input)) return;
        require(same_shape(input, node.output(0)), "{} broadcasts its inputs, which Gradient cannot follow",
                describe(node));
        Value*& sum = gradients_[input];
        sum = sum == nullptr ? gradient : graph_.add("Add", {sum, gradient});
    }

    void propagate(const Node& node, Value* g) {
        const auto mul = [&](Value* a, Value* b) { return graph_.add("Mul", {a, b}); };
        const auto div = [&](Value* a, Value* b) { return graph_.add("Div", {a, b}); };
        const auto neg = [&](Value* a) { return graph_.add("Neg", {a}); };
        Value* a = node.input(0);
        Value* b = node.input(1);
        Value* y = node.output(0);
        // Of y itself: y' = 1 - y² for tanh, y·(1 - y) for the sigmoid.
        const auto one_minus = [&](Value* x) { return graph_.add("Sub", {add_scalar(graph_, 1, x), x}); };
        if (node.is("Add") || node.is("Sub")) {
            accumulate(node, 0, g);
            accumulate(node, 1, node.is("Add") ? g : neg(g));
        } else if (node.is("Mul")) {
            accumulate(node, 0, mul(g, b));
            accumulate(node, 1, mul(g, a));
        } else if (node.is("Div")) {
            accumulate(node, 0, div(g, b));
            accumulate(node, 1, neg(div(mul(g, y), b)));
        } else if (node.is("Neg")) {
            accumulate(node, 0, neg(g));
        } else if (node.is("Identity")) {
            accumulate(node, 0, g);
        } else if (node.is("Exp")) {
            accumulate(node, 0, mul(g, y));
        } else if (node.is("Log")) {
            accumulate(node, 0, div(g, a));
        } else if (node.is("Sqrt")) {
            accumulate(node, 0, div(g, graph_.add("Add", {y, y})));
        } else if (node.is("Tanh")) {
            accumulate(node, 0, mul(g, one_minus(mul(y, y))));
        } else if (node.is("Sigmoid")) {
            accumulate(node, 0, mul(g, mul(y, one_minus(y))));
        } else {
            fail("{} has no derivative here", describe(node));
        }
    }

    Graph& graph_;
    std::unordered_set<Value*> sources_;
    std::unordered_map<const Node*, bool> depends_;
    std::vector<Node*> order_;
    std::unordered_map<const Value*, Value*> gradients_;
};

}  // namespace

void expand_gradient(Graph& graph, Node& gradient) {
    const std::vector<std::string> names = gradient.attributes.get_strings("xs");
    Value* y = graph.find(gradient.attributes.get_string("y"));
    require(y != nullptr && y->type.dtype != DType::undefined, "there is no value '{}' to differentiate",
            gradient.attributes.get_string("y"));
    require(names.size() == gradient.outputs().size(), "{} outputs for the derivatives by {} values",
            gradient.outputs().size(), names.size());
    std::vector<Value*> sources;
    for (size_t i = 0; i < names.size(); ++i) {
        sources.push_back(graph.find(names[i]));
        require(sources[i] != nullptr && gradient.input(i) == sources[i],
                "input {} must be the value '{}' itself", i, names[i]);
    }
    Differentiation differentiation(graph, sources);
    differentiation.run(y);
    const std::vector<Value*> outputs(gradient.outputs().begin(), gradient.outputs().end());
    for (size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i] == nullptr) continue;
        graph.set_output(gradient, i, nullptr);
        graph.add_node("Identity", {differentiation.gradient_of(sources[i])}, {outputs[i]}, {},
                       gradient.name);
    }
}

}  // namespace kilter
