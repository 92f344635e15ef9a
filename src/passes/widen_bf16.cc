#include "graph/onnx_dtype.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

Value* cast(Graph& graph, Value* value, DType to) {
    Attributes attributes;
    attributes.set("to", onnx_code(to));
    Value* result = graph.add("Cast", {value}, std::move(attributes));
    result->type = value->type;
    result->type.dtype = to;
    return result;
}

}  // namespace

//! Convolutions and products of bfloat16 compute in float32, between casts. The function stays the same: bfloat16 products
//! are accumulated in float32 anyway, and the result is rounded to bfloat16 as before.
bool widen_bf16(Graph& graph) {
    return rewrite(graph,
                   {"Conv", "ConvTranspose", "MatMul", "Gemm", "kilter.Conv", "kilter.ConvTranspose",
                    "kilter.MatMul", "kilter.Attention"},
                   [](Graph& g, Node& node) {
                       Value* result = node.output();
                       if (result->type.dtype != DType::bf16) return false;
                       for (size_t i = 0; i < node.inputs().size(); ++i) {
                           Value* input = node.input(i);
                           if (input == nullptr || input->type.dtype != DType::bf16) continue;
                           const Tensor* constant = constant_of(g, input);
                           g.set_input(node, i,
                                       constant != nullptr ? g.add_constant(constant->converted(DType::f32))
                                                           : cast(g, input, DType::f32));
                       }
                       Value* wide = g.add_value({}, result->type);
                       wide->type.dtype = DType::f32;
                       g.set_output(node, 0, wide);
                       Attributes attributes;
                       attributes.set("to", onnx_code(DType::bf16));
                       g.add_node("Cast", {wide}, {result}, std::move(attributes));
                       return true;
                   });
}

}  // namespace kilter
