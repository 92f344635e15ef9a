// Clip, Relu, and Min and Max with a number, one behind the other, limit a value once: Min(Relu(x), 6) is
// Clip(x, 0, 6).
#include <algorithm>
#include <limits>

#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Limits {
    Value* x = nullptr;
    double low = -kInfinity;
    double high = kInfinity;
};

// What `node` limits, and to where; nothing when the limits are not known or contradict each other.
std::optional<Limits> match_limits(const Graph& graph, const Node* node) {
    if (node == nullptr || !is_float(node->output())) return std::nullopt;
    if (node->is("Relu")) return Limits{node->input(0), 0.0};
    if (is_any(*node, {"Min", "Max"}) && node->inputs().size() == 2) {
        for (size_t i = 0; i < 2; ++i) {
            const auto number = scalar_beside(graph, node->input(1 - i), node->input(i));
            if (!number || constant_of(graph, node->input(i)) != nullptr) continue;
            return node->is("Min") ? Limits{node->input(i), -kInfinity, *number}
                                   : Limits{node->input(i), *number};
        }
    }
    if (!node->is("Clip")) return std::nullopt;
    const auto low = node->input(1) == nullptr ? -kInfinity : scalar_of(graph, node->input(1));
    const auto high = node->input(2) == nullptr ? kInfinity : scalar_of(graph, node->input(2));
    if (!low || !high || !(*low <= *high)) return std::nullopt;
    return Limits{node->input(0), *low, *high};
}

}  // namespace

//! Exact. Inner values must have no other readers.
bool simplify_clips(Graph& graph) {
    return rewrite(graph, {"Clip", "Relu", "Min", "Max"}, [](Graph& g, Node& node) {
        auto limits = match_limits(g, &node);
        if (!limits) return false;
        bool merged = false;
        while (g.has_single_use(limits->x)) {
            const auto inner = match_limits(g, limits->x->producer());
            if (!inner) break;
            const double low = std::clamp(inner->low, limits->low, limits->high);
            const double high = std::clamp(inner->high, limits->low, limits->high);
            *limits = {inner->x, low, high};
            merged = true;
        }
        if (!merged && !is_any(node, {"Min", "Max"})) return false;
        if (limits->low == 0 && limits->high == kInfinity) {
            replace_with(g, node.output(), "Relu", {limits->x});
            return true;
        }
        Value* low = limits->low == -kInfinity ? nullptr : add_scalar(g, limits->low, limits->x);
        Value* high = limits->high == kInfinity ? nullptr : add_scalar(g, limits->high, limits->x);
        std::vector<Value*> inputs{limits->x, low};
        if (high != nullptr) inputs.push_back(high);
        replace_with(g, node.output(), "Clip", std::move(inputs));
        return true;
    });
}

}  // namespace kilter
