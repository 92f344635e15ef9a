// Binary element-wise operators: oneDNN where the layouts agree, our broadcasting loops on row-major arrays elsewhere.
#include <algorithm>

#include "engine/builder.h"
#include "engine/dnnl/post_ops.h"
#include "engine/native/elementwise.h"

namespace kilter::engine {
namespace {

std::string_view name_of(const Node& node) {
    if (node.op() == "Add" || node.op() == "Sum") return "add";
    if (node.op() == "Sub") return "sub";
    if (node.op() == "Mul") return "mul";
    if (node.op() == "Div") return "div";
    if (node.op() == "Max") return "max";
    if (node.op() == "Min") return "min";
    return "pow";
}

// One side blocked or channels-last, the other of equal shape or a per-channel vector: oneDNN works in that layout.
bool build_blocked(Builder& builder, const Node& node, std::string_view op) {
    const Value* a = node.input(0);
    const Value* b = node.input(1);
    const Value* y = node.output(0);
    if (builder.dtype(a) != DType::f32 || op == "pow") return false;
    const bool commutes = op != "sub" && op != "div";
    if (commutes && builder.any(a).dense && !builder.any(b).dense) std::swap(a, b);
    const Array left = builder.any(a);
    if (left.dense || !is_packed(left.desc) || builder.shape(a) != builder.shape(y)) return false;
    Shape dims = builder.shape(b);
    dims.insert(dims.begin(), builder.shape(y).size() - dims.size(), 1);
    const bool full = dims == builder.shape(y);
    const dnnl::memory::desc right = full ? left.desc : dense_desc(DType::f32, dims);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::binary::primitive_desc pd(cpu(), *binary_algorithm(op), left.desc, right, left.desc,
                                          attributes, true);
    if (!pd || is_reference(pd.impl_info_str())) return false;
    Array other = full ? builder.as(b, left.desc) : builder.dense(b);
    other.desc = right;
    Array result;
    if (builder.dies_here(left) && other.buffer != left.buffer) {
        result = left;
        builder.alias(y, result);
    } else {
        result = builder.result(y, left.desc);
    }
    builder.add_primitive(dnnl::binary(pd), pd,
                          {{DNNL_ARG_SRC_0, left}, {DNNL_ARG_SRC_1, other}, {DNNL_ARG_DST, result}});
    return true;
}

bool build(Builder& builder, const Node& node) {
    if (node.inputs().size() != 2) return false;
    const Value* a = node.input(0);
    const Value* b = node.input(1);
    const Value* y = node.output(0);
    const DType dtype = builder.dtype(a);
    if (dtype != builder.dtype(b) || dtype != builder.dtype(y)) return false;
    const std::string_view op = name_of(node);
    if (!has_native_binary(op, dtype)) return false;
    if (build_blocked(builder, node, op)) return true;
    const Array left = builder.dense(a);
    const Array right = builder.dense(b);
    add_native_binary(builder, op, left, right, elementwise_result(builder, y, {left, right}));
    return true;
}

KILTER_KERNEL("Add", build);
KILTER_KERNEL("Sum", build);
KILTER_KERNEL("Sub", build);
KILTER_KERNEL("Mul", build);
KILTER_KERNEL("Div", build);
KILTER_KERNEL("Max", build);
KILTER_KERNEL("Min", build);
KILTER_KERNEL("Pow", build);

}  // namespace
}  // namespace kilter::engine
