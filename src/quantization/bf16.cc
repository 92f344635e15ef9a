#include "quantization/bf16.h"

#include "graph/onnx_dtype.h"

namespace kilter {
namespace {

Value* cast(Graph& graph, Value* value, DType dtype, const std::string& stem) {
    Attributes attributes;
    attributes.set("to", onnx_code(dtype));
    Value* result = graph.add("Cast", {value}, std::move(attributes), stem + "_" + std::string(name(dtype)));
    result->type = value->type;
    result->type.dtype = dtype;
    return result;
}

}  // namespace

void convert_to_bf16(Graph& graph, Node& node) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
        Value* input = node.input(i);
        if (input == nullptr || input->type.dtype != DType::f32) continue;
        if (const Tensor* constant = graph.constant(input))
            graph.set_input(
                node, i,
                graph.add_constant(constant->converted(DType::bf16), graph.fresh_name(input->name())));
        else
            graph.set_input(node, i, cast(graph, input, DType::bf16, input->name()));
    }
    Value* result = node.output();
    Value* narrow = graph.add_value(graph.fresh_name(result->name() + "_bf16"), result->type);
    narrow->type.dtype = DType::bf16;
    graph.set_output(node, 0, narrow);
    Attributes attributes;
    attributes.set("to", onnx_code(DType::f32));
    graph.add_node("Cast", {narrow}, {result}, std::move(attributes), result->name() + "_f32");
}

}  // namespace kilter
