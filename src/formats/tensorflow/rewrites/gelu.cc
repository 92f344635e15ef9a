#include "formats/tensorflow/rewrites/gelu.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

namespace kilter::tensorflow {
namespace {

// The longest spelling has ten nodes.
constexpr size_t kMostNodes = 16;
constexpr double kTolerance = 1e-5;  // both forms differ by 5e-4

using Function = double (*)(double, double);

Function function_of(const std::string& op) {
    if (op == "Add" || op == "AddV2") return [](double a, double b) { return a + b; };
    if (op == "Sub") return [](double a, double b) { return a - b; };
    if (op == "Mul") return [](double a, double b) { return a * b; };
    if (op == "RealDiv" || op == "Div") return [](double a, double b) { return a / b; };
    if (op == "Pow") return [](double a, double b) { return std::pow(a, b); };
    if (op == "Square") return [](double a, double) { return a * a; };
    if (op == "Erf") return [](double a, double) { return std::erf(a); };
    if (op == "Erfc") return [](double a, double) { return std::erfc(a); };
    if (op == "Tanh") return [](double a, double) { return std::tanh(a); };
    if (op == "Neg") return [](double a, double) { return -a; };
    if (op == "Identity") return [](double a, double) { return a; };
    return nullptr;
}

double exact_gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }
double approximate_gelu(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

// Operators that compute with nothing but x and single numbers.
class Expressions {
  public:
    Expressions(TfGraph& graph, const Readers& readers, const TfNode& x) : graph_(graph), x_(x) {
        known_.insert(&x);
        // What is found may make more operators complete, until none is.
        for (bool grown = true; grown && nodes_.size() < kMostNodes;) {
            grown = false;
            std::vector<const TfNode*> sources(known_.begin(), known_.end());
            for (const TfNode* source : sources)
                for (const TfGraph::Use& use : readers.of(*source))
                    if (!known_.contains(use.node) && is_complete(*use.node)) {
                        known_.insert(use.node);
                        nodes_.push_back(use.node);
                        grown = true;
                    }
        }
    }

    const std::vector<TfNode*>& nodes() const { return nodes_; }

    //! What `last` is computed with, itself included, in order.
    std::vector<TfNode*> cone(const TfNode& last) const {
        std::set<const TfNode*> needed{&last};
        for (size_t i = nodes_.size(); i-- > 0;)
            if (needed.contains(nodes_[i]))
                for (const TfInput& input : nodes_[i]->inputs) needed.insert(graph_.producer(input));
        std::vector<TfNode*> part;
        std::ranges::copy_if(nodes_, std::back_inserter(part),
                             [&](const TfNode* node) { return needed.contains(node); });
        return part;
    }

    double value(const std::vector<TfNode*>& part, double x) const {
        std::map<const TfNode*, double> values{{&x_, x}};
        for (const TfNode* node : part) {
            const auto operand = [&](size_t index) {
                if (index >= node->inputs.size()) return 0.0;
                const auto found = values.find(graph_.producer(node->inputs[index]));
                return found != values.end() ? found->second : *number(node->inputs[index]);
            };
            values[node] = function_of(node->op)(operand(0), operand(1));
        }
        return values.at(part.back());
    }

  private:
    std::optional<double> number(const TfInput& input) const {
        const std::optional<Tensor> constant = constant_of(graph_, input);
        if (!constant || constant->size() != 1) return std::nullopt;
        return constant->to_doubles()[0];
    }

    bool is_complete(const TfNode& node) const {
        if (function_of(node.op) == nullptr || node.data_inputs() != node.inputs.size() ||
            node.inputs.size() > 2)
            return false;
        return std::ranges::all_of(node.inputs, [&](const TfInput& input) {
            return input.port == 0 && (known_.contains(graph_.producer(input)) || number(input));
        });
    }

    TfGraph& graph_;
    const TfNode& x_;
    std::set<const TfNode*> known_;
    std::vector<TfNode*> nodes_;
};

bool is_closed(const std::vector<TfNode*>& part, const TfNode& x, const Readers& readers,
               const Wanted& wanted) {
    const auto inside = [&](const TfNode& node) {
        return !wanted.contains(node.name) &&
               std::ranges::all_of(readers.of(node), [&](const TfGraph::Use& use) {
                   return std::ranges::find(part, use.node) != part.end();
               });
    };
    return inside(x) &&
           std::all_of(part.begin(), part.end() - 1, [&](const TfNode* node) { return inside(*node); });
}

}  // namespace

std::optional<Gelu> gelu_behind(TfGraph& graph, const Readers& readers, const TfNode& x,
                                const Wanted& wanted) {
    const auto has_curve = [](const TfNode* node) {
        return node->op == "Erf" || node->op == "Erfc" || node->op == "Tanh";
    };
    const Expressions expressions(graph, readers, x);
    if (std::ranges::none_of(expressions.nodes(), has_curve)) return std::nullopt;
    for (const TfNode* last : expressions.nodes()) {
        std::vector<TfNode*> part = expressions.cone(*last);
        if (part.size() < 4 || !is_closed(part, x, readers, wanted)) continue;
        double from_exact = 0;
        double from_approximate = 0;
        for (double at = -6; at <= 6; at += 0.25) {
            const double value = expressions.value(part, at);
            from_exact = std::max(from_exact, std::fabs(value - exact_gelu(at)));
            from_approximate = std::max(from_approximate, std::fabs(value - approximate_gelu(at)));
        }
        if (from_exact < kTolerance || from_approximate < kTolerance)
            return Gelu{std::move(part), from_exact < kTolerance};
    }
    return std::nullopt;
}

}  // namespace kilter::tensorflow
