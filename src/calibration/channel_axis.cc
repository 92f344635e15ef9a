#include <algorithm>

#include "calibration/collector.h"

namespace kilter {
namespace {

enum class Kind { other, spatial, product };

// What the operator calls the channels of its input `value`, or of its output when `value` is null.
Kind kind(const Node& node, const Value* value) {
    const auto reads_first = [&] { return value == nullptr || node.input(0) == value; };
    for (const std::string_view op :
         {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool",
          "BatchNormalization", "InstanceNormalization", "LRN", "Resize", "DepthToSpace", "SpaceToDepth"})
        if (node.op() == op) return reads_first() ? Kind::spatial : Kind::other;
    for (const std::string_view op : {"MatMul", "Gemm", "Attention", "LayerNormalization"})
        if (node.op() == op) return Kind::product;
    return Kind::other;
}

Kind kind(const Value& value) {
    Kind found = Kind::other;
    for (const Node* node : value.users()) {
        const Kind reader = kind(*node, &value);
        if (reader == Kind::spatial) return reader;
        if (reader == Kind::product) found = reader;
    }
    return found;
}

// Element-wise operators hand on what their input is: look a little further up, and down, than one operator.
Kind kind_nearby(const Value& value, int steps) {
    if (const Kind found = kind(value); found != Kind::other) return found;
    const Node* producer = value.producer();
    if (producer != nullptr)
        if (const Kind found = kind(*producer, nullptr); found != Kind::other) return found;
    if (steps == 0) return Kind::other;
    for (const Node* node : value.users())
        if (node->output() != nullptr)
            if (const Kind found = kind(*node->output()); found != Kind::other) return found;
    if (producer != nullptr && producer->input(0) != nullptr && !producer->input(0)->is_constant())
        return kind_nearby(*producer->input(0), steps - 1);
    return Kind::other;
}

}  // namespace

int channel_axis(const Value& value) {
    if (!value.type.shape || value.type.shape->empty()) return -1;
    const Dims& shape = *value.type.shape;
    const auto rank = static_cast<int>(shape.size());
    Kind found = kind_nearby(value, 4);
    if (found == Kind::other) found = rank >= 4 ? Kind::spatial : Kind::product;
    const int axis = found == Kind::spatial && rank >= 2 ? 1 : rank - 1;
    return shape[static_cast<size_t>(axis)].known() ? axis : -1;
}

}  // namespace kilter
