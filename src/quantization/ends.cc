#include <unordered_set>

#include "quantization/eligibility.h"
#include "quantization/recipes.h"

namespace kilter {
namespace {

bool is_product(const Node& node) {
    const Capability* can = find_capability(public_type(node));
    return can != nullptr && can->role == Role::must;
}

// Products that no path from the graph's inputs reaches through another product.
std::unordered_set<const Node*> first_products(const Graph& graph) {
    std::unordered_set<const Node*> behind, first;
    for (const auto& node : graph.nodes()) {
        bool after = false;
        for (const Value* input : node->inputs())
            if (input != nullptr && input->producer() != nullptr)
                after = after || is_product(*input->producer()) || behind.contains(input->producer());
        if (after) behind.insert(node.get());
        if (is_product(*node) && !after) first.insert(node.get());
    }
    return first;
}

std::unordered_set<const Node*> last_products(const Graph& graph) {
    std::unordered_set<const Node*> ahead, last;
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
        bool before = false;
        for (const Value* output : (*node)->outputs())
            if (output != nullptr)
                for (const Node* user : output->users())
                    before = before || is_product(*user) || ahead.contains(user);
        if (before) ahead.insert(node->get());
        if (is_product(**node) && !before) last.insert(node->get());
    }
    return last;
}

}  // namespace

void keep_ends_in_float(Plan& plan, const Graph& graph, const Recipes& recipes) {
    const auto names = plan_names(graph);
    const auto keep = [&](const std::unordered_set<const Node*>& nodes) {
        for (const Node* node : nodes)
            if (OperatorPlan* entry = plan.find(names.at(node))) entry->precision = Precision::f32;
    };
    if (recipes.float_first) keep(first_products(graph));
    if (recipes.float_last) keep(last_products(graph));
}

}  // namespace kilter
