// A function of one quantized value whose result is quantized again is a table of 256 entries; when the table says nothing
// new, as for a Relu of numbers that are never negative, the operators disappear.
#include <algorithm>
#include <numeric>

#include "engine/ref/executor.h"
#include "passes/list.h"
#include "passes/quantization_parameters.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

// The input of `node` when it maps every element by itself, the same way everywhere.
Value* mapped_input(const Graph& graph, const Node& node) {
    if (is_any(node, {"Relu",        "LeakyRelu", "Sigmoid", "Tanh",     "Gelu",     "Swish",     "HardSwish",
                      "HardSigmoid", "Elu",       "Selu",    "Softplus", "Softsign", "Mish",      "Exp",
                      "Log",         "Abs",       "Sqrt",    "Neg",      "Erf",      "Reciprocal"}))
        return node.input(0);
    if (node.is("Clip")) {
        for (const size_t limit : {size_t{1}, size_t{2}})
            if (node.input(limit) != nullptr && !scalar_of(graph, node.input(limit))) return nullptr;
        return node.input(0);
    }
    for (const std::string_view op : {"Add", "Sub", "Mul", "Div", "Pow"})
        if (const auto scalar = match_scalar(graph, &node, op)) return scalar->x;
    return nullptr;
}

// What the chain of operators that ends in `last` makes of every possible byte.
Tensor tabulate(const Graph& graph, const std::vector<const Node*>& chain, const Value* source, DType dtype) {
    std::vector<uint8_t> bytes(256);
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    Tensor current = Tensor(dtype, {256});
    std::ranges::copy(bytes, static_cast<uint8_t*>(current.raw_mutable()));
    for (const Node* node : chain) {
        std::vector<Tensor> inputs;
        for (const Value* value : node->inputs()) {
            if (value == source) {
                inputs.push_back(current);
                continue;
            }
            const Tensor* constant = constant_of(graph, value);
            inputs.push_back(constant == nullptr ? Tensor() : constant->reshaped({}));
        }
        current = ref::run_node(*node, inputs)[0];
        source = node->output();
    }
    return current;
}

bool is_identity(const Tensor& table, DType from) {
    if (table.dtype() != from) return false;
    const auto* entries = static_cast<const uint8_t*>(table.raw());
    for (int i = 0; i < 256; ++i)
        if (entries[i] != i) return false;
    return true;
}

}  // namespace

//! Exact: the table is made by the reference kernels of the operators it replaces.
bool tabulate_quantized(Graph& graph) {
    return rewrite(graph, "QuantizeLinear", [](Graph& g, Node& quantize) {
        if (!tensor_parameters(g, quantize)) return false;
        std::vector<const Node*> chain{&quantize};
        Value* x = quantize.input(0);
        while (x->producer() != nullptr && !x->producer()->is("DequantizeLinear")) {
            Value* before = mapped_input(g, *x->producer());
            if (before == nullptr) return false;
            chain.push_back(x->producer());
            x = before;
        }
        const auto source = dequantized(g, x);
        if (!source || constant_of(g, source->integers) != nullptr) return false;
        chain.push_back(x->producer());
        std::ranges::reverse(chain);
        Tensor table = tabulate(g, chain, source->integers, source->parameters.dtype);
        if (is_identity(table, source->parameters.dtype)) {
            substitute(g, quantize.output(), source->integers);
            return true;
        }
        replace_with(g, quantize.output(), "QLookup", {source->integers, g.add_constant(std::move(table))},
                     {}, kKilterDomain);
        return true;
    });
}

}  // namespace kilter
