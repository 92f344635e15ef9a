// Constant folding: what depends on constants only, or on known shapes only, is computed now, by the
// reference kernels.
#include <algorithm>
#include <exception>
#include <numeric>

#include "engine/ref/executor.h"
#include "ops/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

// A small model that asks for a huge constant (ConstantOfShape, Expand) would otherwise become a huge model.
constexpr double kMaxGrowth = 64 << 20;

// Integers that an operator may compute with; lower_quantized decides, fold_dequantized folds the rest.
bool is_quantized_constant(const Node& node) {
    return node.is("DequantizeLinear") && bits(node.input(0)->type.dtype) == 8 &&
           is_integer(node.input(0)->type.dtype);
}

bool is_foldable(const Node& node) {
    const OpDefinition* definition = find_op(node);
    return !is_quantized_constant(node) && definition != nullptr && definition->kernel != nullptr &&
           definition->deterministic && node.subgraphs().empty();
}

bool grows_too_much(const Node& node, const std::vector<Tensor>& inputs) {
    double before = kMaxGrowth;
    for (const Tensor& input : inputs) before += input.empty() ? 0.0 : static_cast<double>(input.bytes());
    double after = 0;  // a double, because an absurd shape overflows integers
    for (const Value* output : node.outputs()) {
        if (output == nullptr) continue;
        // Only these can be larger than their inputs without limit: without a known shape they wait for run
        // time.
        if (!output->type.is_static())
            return is_any(
                node, {"ConstantOfShape", "Expand", "Tile", "Range", "OneHot", "Pad", "Resize", "EyeLike"});
        double size = bits(output->type.dtype) / 8.0;
        for (const int64_t dim : output->type.static_shape()) size *= static_cast<double>(dim);
        after += size;
    }
    return after > before;
}

bool replace_outputs(Graph& graph, Node& node, const std::vector<Tensor>& results) {
    const std::vector<Value*> outputs(node.outputs().begin(), node.outputs().end());
    for (size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i] != nullptr && (results.at(i).empty() || !is_element(results[i].dtype()))) return false;
    for (size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i] != nullptr) graph.make_constant(outputs[i], results[i]);
    return true;
}

std::vector<Tensor> try_run(const Node& node, const std::vector<Tensor>& inputs) {
    try {
        return ref::run_node(node, inputs);
    } catch (const std::exception&) {
        return {};  // the operator may never run; if it does, it fails then with the same message
    }
}

bool fold_node(Graph& graph, Node& node) {
    std::vector<Tensor> inputs;
    for (const Value* value : node.inputs()) {
        const Tensor* tensor = constant_of(graph, value);
        if (value != nullptr && tensor == nullptr) return false;
        inputs.push_back(tensor == nullptr ? Tensor() : *tensor);
    }
    if (grows_too_much(node, inputs)) return false;
    const std::vector<Tensor> results = try_run(node, inputs);
    return !results.empty() && replace_outputs(graph, node, results);
}

// The dimensions that a Shape node returns; entries may be unknown.
std::optional<Dims> shape_of_input(const Node& shape) {
    const Value* x = shape.input(0);
    if (!x->type.shape) return std::nullopt;
    const auto rank = static_cast<int64_t>(x->type.shape->size());
    const auto clamp = [&](int64_t axis) {
        return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
    };
    const int64_t start = clamp(shape.attributes.get_int("start", 0));
    const int64_t end = std::max(start, clamp(shape.attributes.get_int("end", rank)));
    return Dims(x->type.shape->begin() + start, x->type.shape->begin() + end);
}

std::optional<Tensor> all_known(const Shape& shape, const Dims& dims) {
    std::vector<int64_t> numbers;
    for (const Dim& dim : dims) {
        if (!dim.known()) return std::nullopt;
        numbers.push_back(dim.value);
    }
    return Tensor::of<int64_t>(shape, numbers);
}

bool fold_shape(Graph& graph, Node& node) {
    const std::optional<Dims> dims = shape_of_input(node);
    if (!dims) return false;
    const auto folded = all_known({static_cast<int64_t>(dims->size())}, *dims);
    return folded && replace_outputs(graph, node, {*folded});
}

bool fold_size(Graph& graph, Node& node) {
    const ValueType& type = node.input(0)->type;
    if (!type.is_static()) return false;
    return replace_outputs(graph, node, {Tensor::scalar<int64_t>(element_count(type.static_shape()))});
}

// A part of a shape may be known where the whole is not: Gather(Shape(x), 1). To see which entries survive,
// the operator is run on their positions.
bool fold_part_of_shape(Graph& graph, Node& node) {
    const Node* shape = produced_by(node.input(0), "Shape");
    if (shape == nullptr) return false;
    const std::optional<Dims> dims = shape_of_input(*shape);
    if (!dims) return false;
    std::vector<int64_t> positions(dims->size());
    std::iota(positions.begin(), positions.end(), 0);
    std::vector<Tensor> inputs{Tensor::of<int64_t>({static_cast<int64_t>(positions.size())}, positions)};
    for (const Value* value : node.inputs().subspan(1)) {
        const Tensor* tensor = constant_of(graph, value);
        if (value != nullptr && tensor == nullptr) return false;
        inputs.push_back(tensor == nullptr ? Tensor() : *tensor);
    }
    const std::vector<Tensor> chosen = try_run(node, inputs);
    if (chosen.size() != 1 || chosen[0].dtype() != DType::i64) return false;
    Dims entries;
    for (const int64_t position : chosen[0].to_ints())
        entries.push_back(dims->at(static_cast<size_t>(position)));
    const auto folded = all_known(chosen[0].shape(), entries);
    return folded && replace_outputs(graph, node, {*folded});
}

}  // namespace

//! Needs types for shapes; leaves random operators, operators with sub-graphs and results that are much
//! larger than the inputs.
bool fold_constants(Graph& graph) {
    return rewrite_all(graph, [](Graph& g, Node& node) {
        if (!is_foldable(node)) return false;
        if (fold_node(g, node)) return true;
        if (node.is("Shape")) return fold_shape(g, node);
        if (node.is("Size")) return fold_size(g, node);
        return is_any(node, {"Gather", "Slice", "Squeeze", "Unsqueeze"}) && fold_part_of_shape(g, node);
    });
}

}  // namespace kilter
