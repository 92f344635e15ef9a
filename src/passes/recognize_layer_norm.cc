// LayerNormalization from its spelled-out forms: (x − mean)/√(var + ε)·γ + β, and TensorFlow's x·s + (β −
// mean·s) with s = γ/√(var + ε).
#include <algorithm>
#include <numeric>

#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

struct Normalization {
    Value* x = nullptr;
    Value* mean = nullptr;
    Value* deviation = nullptr;  // √(var + ε)
    double epsilon = 0;
    int64_t axis = 0;
};

struct Affine {
    Value* result = nullptr;
    Value* gamma = nullptr;  // null: 1
    Value* beta = nullptr;   // null: 0
};

// The first of the trailing axes that a ReduceMean reduces, keeping dimensions; nothing when they are not the
// trailing ones.
std::optional<int64_t> trailing_axis(const Graph& graph, const Node& reduce) {
    const int rank = rank_of(reduce.input(0));
    auto axes = int_constants(graph, reduce.input(1));
    if (rank <= 0 || !axes || axes->empty() || reduce.attributes.get_int("keepdims", 1) == 0)
        return std::nullopt;
    for (int64_t& axis : *axes) axis += axis < 0 ? rank : 0;
    std::ranges::sort(*axes);
    std::vector<int64_t> trailing(axes->size());
    std::iota(trailing.begin(), trailing.end(), rank - static_cast<int64_t>(axes->size()));
    if (*axes != trailing) return std::nullopt;
    return axes->front();
}

// x − mean(x); the mean is found from the subtraction.
const Node* match_centering(const Graph& graph, const Value* value) {
    const Node* sub = produced_by(value, "Sub");
    if (sub == nullptr) return nullptr;
    const Node* mean = produced_by(sub->input(1), "ReduceMean");
    return mean != nullptr && mean->input(0) == sub->input(0) && trailing_axis(graph, *mean) ? sub : nullptr;
}

const Node* match_squared_centering(const Graph& graph, const Value* value) {
    if (const Node* mul = produced_by(value, "Mul"); mul != nullptr && mul->input(0) == mul->input(1))
        return match_centering(graph, mul->input(0));
    if (const auto pow = match_scalar(graph, value->producer(), "Pow"); pow && pow->c == 2)
        return match_centering(graph, pow->x);
    return nullptr;
}

std::optional<Normalization> match_deviation(const Graph& graph, const Node& sqrt) {
    const auto sum = match_scalar(graph, sqrt.input(0)->producer(), "Add");
    if (!sum) return std::nullopt;
    const Node* variance = produced_by(sum->x, "ReduceMean");
    if (variance == nullptr) return std::nullopt;
    const Node* centering = match_squared_centering(graph, variance->input(0));
    if (centering == nullptr) return std::nullopt;
    const auto axis = trailing_axis(graph, *variance);
    if (!axis || axis != trailing_axis(graph, *centering->input(1)->producer())) return std::nullopt;
    return Normalization{centering->input(0), centering->input(1), sqrt.output(), sum->c, *axis};
}

// Does `value` have one number for every element of the normalized axes, and nothing else?
bool is_parameter(const Graph& graph, const Value* value, const Normalization& norm) {
    const ValueType& type = value->type;
    const Tensor* tensor = constant_of(graph, value);
    const Dims dims = tensor != nullptr ? to_dims(tensor->shape()) : type.shape.value_or(Dims{});
    if (tensor == nullptr && !type.shape) return false;
    const Dims normalized(norm.x->type.shape->begin() + norm.axis, norm.x->type.shape->end());
    if (dims.size() < normalized.size() || dims.size() > norm.x->type.shape->size()) return false;
    const size_t leading = dims.size() - normalized.size();
    for (size_t i = 0; i < dims.size(); ++i)
        if (!(dims[i] == (i < leading ? Dim(1) : normalized[i - leading]))) return false;
    return leading == 0 || tensor != nullptr;
}

// The factor beside `value` in a product, when it is a parameter.
Value* parameter_beside(const Graph& graph, const Node* node, const Value* value, const Normalization& norm) {
    Value* other = node == nullptr ? nullptr : other_input(*node, value);
    return other != nullptr && is_parameter(graph, other, norm) ? other : nullptr;
}

bool is_centered(const Graph& graph, const Value* value, const Normalization& norm) {
    const Node* sub = match_centering(graph, value);
    return sub != nullptr && sub->input(0) == norm.x && sub->input(1) == norm.mean;
}

// (x − mean)·…: gamma and beta may follow.
Affine with_gamma_and_beta(const Graph& graph, Value* normalized, Value* gamma, const Normalization& norm) {
    Affine found{normalized, gamma, nullptr};
    const Node* user = only_user(graph, found.result);
    if (gamma == nullptr && user != nullptr && user->is("Mul")) {
        if (Value* scale = parameter_beside(graph, user, found.result, norm)) {
            found.gamma = scale;
            found.result = user->output();
            user = only_user(graph, found.result);
        }
    }
    if (user != nullptr && user->is("Add")) {
        if (Value* shift = parameter_beside(graph, user, found.result, norm)) {
            found.beta = shift;
            found.result = user->output();
        }
    }
    return found;
}

// x·s + (β − mean·s), where `scale` is s
std::optional<Affine> match_split_form(const Graph& graph, const Value* scale, Value* gamma,
                                       const Normalization& norm) {
    const Node* scaled_x = nullptr;
    const Node* scaled_mean = nullptr;
    for (const Node* user : scale->users()) {
        if (!user->is("Mul")) continue;
        if (other_input(*user, scale) == norm.x) scaled_x = user;
        if (other_input(*user, scale) == norm.mean) scaled_mean = user;
    }
    if (scaled_x == nullptr || scaled_mean == nullptr) return std::nullopt;
    const Node* offset = only_user(graph, scaled_mean->output());
    if (offset == nullptr || !offset->is("Sub") || offset->input(1) != scaled_mean->output())
        return std::nullopt;
    Value* beta = offset->input(0);
    const Node* sum = only_user(graph, offset->output());
    if (sum == nullptr || !sum->is("Add") || other_input(*sum, offset->output()) != scaled_x->output())
        return std::nullopt;
    if (!is_parameter(graph, beta, norm)) return std::nullopt;
    return Affine{sum->output(), gamma, beta};
}

// Readers of 1/√(var + ε), possibly already multiplied by gamma.
std::optional<Affine> match_reciprocal(const Graph& graph, Value* reciprocal, Value* gamma,
                                       const Normalization& norm) {
    if (auto found = match_split_form(graph, reciprocal, gamma, norm)) return found;
    for (const Node* user : reciprocal->users()) {
        if (!user->is("Mul")) continue;
        const Value* other = other_input(*user, reciprocal);
        if (other != nullptr && is_centered(graph, other, norm))
            return with_gamma_and_beta(graph, user->output(), gamma, norm);
        if (Value* scale = gamma == nullptr ? parameter_beside(graph, user, reciprocal, norm) : nullptr)
            if (auto found = match_reciprocal(graph, user->output(), scale, norm)) return found;
    }
    return std::nullopt;
}

std::optional<Affine> match_readers(const Graph& graph, const Normalization& norm) {
    for (const Node* user : norm.deviation->users()) {
        if (user->is("Div") && user->input(1) == norm.deviation && is_centered(graph, user->input(0), norm))
            return with_gamma_and_beta(graph, user->output(), nullptr, norm);
        if (user->is("Reciprocal"))
            if (auto found = match_reciprocal(graph, user->output(), nullptr, norm)) return found;
        if (const auto one = user->is("Div") ? scalar_of(graph, user->input(0)) : std::nullopt;
            one && *one == 1)
            if (auto found = match_reciprocal(graph, user->output(), nullptr, norm)) return found;
    }
    return std::nullopt;
}

// The parameter with just the normalized axes.
Value* trimmed(Graph& graph, Value* parameter, size_t rank) {
    const Tensor* tensor = constant_of(graph, parameter);
    if (tensor == nullptr || tensor->shape().size() == rank) return parameter;
    return graph.add_constant(
        tensor->reshaped(Shape(tensor->shape().end() - static_cast<int64_t>(rank), tensor->shape().end())));
}

}  // namespace

//! Normalizes over trailing axes only. Inner values that others read stay; they are computed twice then.
bool recognize_layer_norm(Graph& graph) {
    return rewrite(graph, "Sqrt", [](Graph& g, Node& sqrt) {
        const auto norm = match_deviation(g, sqrt);
        if (!norm || !is_float(norm->x)) return false;
        const auto affine = match_readers(g, *norm);
        if (!affine) return false;
        const Dims normalized(norm->x->type.shape->begin() + norm->axis, norm->x->type.shape->end());
        const ValueType parameter(norm->x->type.dtype, normalized);
        if (affine->gamma == nullptr && !parameter.is_static()) return false;
        Value* gamma = affine->gamma != nullptr
                           ? trimmed(g, affine->gamma, normalized.size())
                           : g.add_constant(Tensor::filled(parameter.dtype, parameter.static_shape(), 1.0));
        std::vector<Value*> inputs{norm->x, gamma};
        if (affine->beta != nullptr) inputs.push_back(trimmed(g, affine->beta, normalized.size()));
        Attributes attributes;
        attributes.set("axis", norm->axis - static_cast<int64_t>(norm->x->type.shape->size()));
        attributes.set("epsilon", static_cast<float>(norm->epsilon));
        replace_with(g, affine->result, "LayerNormalization", std::move(inputs), std::move(attributes));
        return true;
    });
}

}  // namespace kilter
