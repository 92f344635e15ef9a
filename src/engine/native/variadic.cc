// Sum, Mean, Max and Min of any number of broadcast arrays: one after the other into the result.
#include "engine/builder.h"
#include "engine/native/elementwise.h"

namespace kilter::engine {
namespace {

bool build(Builder& builder, const Node& node) {
    const std::string_view op = node.op() == "Max" ? "max" : node.op() == "Min" ? "min" : "add";
    const DType dtype = builder.dtype(node.output(0));
    const bool mean = node.op() == "Mean";
    if (!has_native_binary(op, dtype) || (mean && dtype != DType::f32)) return false;
    std::vector<Array> operands;
    for (const Value* value : node.inputs()) operands.push_back(builder.dense(value));
    if (operands.size() == 1) {
        builder.alias(node.output(0), operands[0]);
        return true;
    }
    // The result may overwrite one of the first two; the others are read after it is begun.
    const bool later_overlaps = operands.size() > 2;
    const Array y = later_overlaps ? builder.dense_result(node.output(0))
                                   : elementwise_result(builder, node.output(0), operands);
    add_native_binary(builder, op, operands[0], operands[1], y);
    for (size_t i = 2; i < operands.size(); ++i) add_native_binary(builder, op, y, operands[i], y);
    if (mean) {
        const Array count = builder.constant_array(Tensor::scalar(static_cast<float>(operands.size())));
        add_native_binary(builder, "div", y, count, y);
    }
    return true;
}

KILTER_KERNEL("Sum", build);
KILTER_KERNEL("Mean", build);
KILTER_KERNEL("Max", build);
KILTER_KERNEL("Min", build);

}  // namespace
}  // namespace kilter::engine
