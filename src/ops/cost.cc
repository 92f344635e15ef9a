#include "ops/cost.h"

#include <algorithm>

namespace kilter {
namespace {

using Count = std::optional<int64_t>;

bool is_one_of(const Node& node, std::initializer_list<std::string_view> ops) {
    return (node.domain().empty() || node.domain() == kKilterDomain) &&
           std::ranges::find(ops, node.op()) != ops.end();
}

std::optional<Shape> shape_of(const Value* value) {
    if (value == nullptr || !value->type.shape) return std::nullopt;
    Shape shape;
    for (const Dim& dim : *value->type.shape) {
        if (!dim.known()) return std::nullopt;
        shape.push_back(dim.value);
    }
    return shape;
}

Count product(const Shape& shape) {
    int64_t count = 1;
    for (const int64_t dim : shape)
        if (__builtin_mul_overflow(count, dim, &count)) return std::nullopt;
    return count;
}

Count times(Count a, Count b) {
    int64_t result = 0;
    if (!a || !b || __builtin_mul_overflow(*a, *b, &result)) return std::nullopt;
    return result;
}

// Every element of `outer` meets one filter of `weights`, whose first axis counts the filters.
Count convolution(const Value* outer, const Value* weights) {
    const auto elements = shape_of(outer);
    const auto filter = shape_of(weights);
    if (!elements || !filter || filter->empty()) return std::nullopt;
    return times(product(*elements), product(Shape(filter->begin() + 1, filter->end())));
}

// Every element of the output is a dot product over the inner axis of the first operand.
Count matrix_product(const Node& node, const Value* first, bool transposed) {
    const auto output = shape_of(node.output());
    const auto a = shape_of(first);
    if (!output || !a || a->empty()) return std::nullopt;
    const bool swap = transposed && a->size() > 1;
    return times(product(*output), (*a)[swap ? a->size() - 2 : a->size() - 1]);
}

Count attention(const Node& node) {
    const auto q = shape_of(node.input(0));
    const auto v = shape_of(node.input(2));
    if (!q || !v || q->size() != 4 || v->size() != 4) return std::nullopt;
    return times(product({(*q)[0], (*q)[1], (*q)[2], (*v)[2]}), (*q)[3] + (*v)[3]);
}

// Input and recurrent weights are applied once per step and batch element.
Count recurrent(const Node& node) {
    const auto x = shape_of(node.input(0));
    const auto w = shape_of(node.input(1));
    const auto r = shape_of(node.input(2));
    if (!x || !w || !r || x->size() != 3) return std::nullopt;
    const Count weights = product(*w);
    const Count recurrence = product(*r);
    if (!weights || !recurrence) return std::nullopt;
    return times(times((*x)[0], (*x)[1]), *weights + *recurrence);
}

template <class Visitor>
void visit_constants(const Graph& graph, const Visitor& visit) {
    for (const Value* value : graph.constants())
        if (!value->users().empty() || graph.is_output(value)) visit(*graph.constant(value));
    for (const auto& node : graph.nodes())
        for (const Graph* body : node->subgraphs()) visit_constants(*body, visit);
}

}  // namespace

Count multiply_accumulates(const Node& node) {
    if (is_one_of(node, {"Conv", "ConvInteger", "DeformConv", "QConv"}))
        return convolution(node.output(), node.input(1));
    if (is_one_of(node, {"QLinearConv"})) return convolution(node.output(), node.input(3));
    if (is_one_of(node, {"ConvTranspose", "QConvTranspose"}))
        return convolution(node.input(0), node.input(1));
    if (is_one_of(node, {"MatMul", "MatMulInteger", "QLinearMatMul", "QMatMul"}))
        return matrix_product(node, node.input(0), node.attributes.get_int("trans_a") != 0);
    if (is_one_of(node, {"Gemm"}))
        return matrix_product(node, node.input(0), node.attributes.get_int("transA") != 0);
    if (node.is_kilter("Attention") || node.is_kilter("QAttention")) return attention(node);
    if (is_one_of(node, {"LSTM", "GRU", "RNN"})) return recurrent(node);
    return 0;
}

int64_t parameter_count(const Graph& graph) {
    int64_t count = 0;
    visit_constants(graph, [&](const Tensor& tensor) { count += tensor.size(); });
    return count;
}

size_t parameter_bytes(const Graph& graph) {
    size_t bytes = 0;
    visit_constants(graph, [&](const Tensor& tensor) { bytes += tensor.bytes(); });
    return bytes;
}

bool is_quantizable(const Node& node) {
    if (!is_one_of(node, {"Conv", "ConvTranspose", "MatMul", "Gemm", "Attention"})) return false;
    const Value* x = node.input(0);
    return x != nullptr && (x->type.dtype == DType::f32 || x->type.dtype == DType::undefined);
}

}  // namespace kilter
