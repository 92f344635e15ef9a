// GELU from its spelled-out forms: x/2·(1 + erf(x/√2)) and x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
// Factors may come in any order and association, and the polynomial in any spelling: it is compared by its
// coefficients.
#include <array>
#include <cmath>
#include <numbers>

#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

constexpr size_t kTerms = 4;  // up to x³
using Polynomial = std::array<double, kTerms>;

std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b) {
    Polynomial result{};
    for (size_t i = 0; i < kTerms; ++i)
        for (size_t j = 0; j < kTerms; ++j) {
            const double term = a[i] * b[j];
            if (term == 0) continue;
            if (i + j >= kTerms) return std::nullopt;
            result[i + j] += term;
        }
    return result;
}

// `value` as a polynomial in x; nothing when it is something else. Shallow: the longest spelling has seven
// levels.
std::optional<Polynomial> polynomial(const Graph& graph, const Value* value, const Value* x, int depth = 8) {
    if (value == x) return Polynomial{0, 1};
    if (const auto number = scalar_beside(graph, value, x)) return Polynomial{*number};
    if (depth == 0 || value->producer() == nullptr || value->producer()->inputs().size() != 2)
        return std::nullopt;
    const Node& node = *value->producer();
    if (!is_any(node, {"Add", "Sub", "Mul", "Div", "Pow"})) return std::nullopt;
    const auto a = polynomial(graph, node.input(0), x, depth - 1);
    if (!a) return std::nullopt;
    if (node.is("Pow") || node.is("Div")) {
        const auto number = scalar_beside(graph, node.input(1), x);
        if (!number || *number == 0) return std::nullopt;
        if (node.is("Div")) return product(*a, {1 / *number});
        if (*number == 2) return product(*a, *a);
        if (*number != 3) return std::nullopt;
        const auto square = product(*a, *a);
        return square ? product(*square, *a) : std::nullopt;
    }
    const auto b = polynomial(graph, node.input(1), x, depth - 1);
    if (!b) return std::nullopt;
    if (node.is("Mul")) return product(*a, *b);
    Polynomial sum = *a;
    for (size_t i = 0; i < kTerms; ++i) sum[i] += node.is("Add") ? (*b)[i] : -(*b)[i];
    return sum;
}

bool is_argument(const Graph& graph, const Node& function, const Value* x) {
    const auto found = polynomial(graph, function.input(0), x);
    if (!found) return false;
    const double slope = function.is("Erf") ? std::numbers::sqrt2 / 2 : std::sqrt(2 / std::numbers::pi);
    const double cubic = function.is("Erf") ? 0 : slope * 0.044715;
    return (*found)[0] == 0 && near((*found)[1], slope) && (*found)[2] == 0 && near((*found)[3], cubic);
}

struct Factors {
    Value* result = nullptr;  // factor·x·rest, where rest is what the walk started from
    Value* x = nullptr;
};

// Follows the single readers of `value` through multiplications until they amount to 0.5·x with x as the
// function wants it.
std::optional<Factors> multiply_out(const Graph& graph, Value* value, const Node& function) {
    double factor = 1;
    Value* x = nullptr;
    while (Node* user = only_user(graph, value)) {
        if (const auto mul = match_scalar(graph, user, "Mul")) {
            factor *= mul->c;
        } else if (const auto div = match_scalar(graph, user, "Div")) {
            factor /= div->c;
        } else if (user->is("Mul") && x == nullptr) {
            Value* other = other_input(*user, value);
            if (other == nullptr) return std::nullopt;
            const ScalarOperand stripped = strip_scale(graph, other);
            if (is_argument(graph, function, other)) {
                x = other;
            } else if (is_argument(graph, function, stripped.x)) {
                x = stripped.x;
                factor *= stripped.c;
            } else {
                return std::nullopt;
            }
        } else {
            return std::nullopt;
        }
        value = user->output();
        if (x != nullptr && near(factor, 0.5)) return Factors{value, x};
    }
    return std::nullopt;
}

}  // namespace

//! The inner values must have no other readers; x may.
bool recognize_gelu(Graph& graph) {
    return rewrite(graph, {"Erf", "Tanh"}, [](Graph& g, Node& function) {
        const Node* plus = only_user(g, function.output());
        const auto one = match_scalar(g, plus, "Add");
        if (!one || one->c != 1 || !is_float(function.output())) return false;
        const auto factors = multiply_out(g, plus->output(), function);
        if (!factors) return false;
        Attributes attributes;
        attributes.set("approximate", std::string(function.is("Erf") ? "none" : "tanh"));
        replace_with(g, factors->result, "Gelu", {factors->x}, std::move(attributes));
        return true;
    });
}

}  // namespace kilter
