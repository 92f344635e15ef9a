// Scan: a sub-graph run over slices of some inputs; it carries states and stacks its other results.
// Body: (states…, slices…) -> (states…, results…).
#include <algorithm>

#include "base/fail.h"
#include "ops/control_flow.h"

namespace kilter::scan_op {

struct Layout {
    size_t states, slices, results;
    std::vector<int64_t> input_axes, output_axes, input_directions, output_directions;
};

std::vector<int64_t> list_of(const Attributes& attributes, std::string_view name, size_t count) {
    std::vector<int64_t> list = attributes.get_ints(name, std::vector<int64_t>(count, 0));
    require(list.size() == count, "{} has {} entries, expected {}", name, list.size(), count);
    return list;
}

Layout layout_of(const Node& node, const Graph& body) {
    const int64_t slices = node.attributes.get_int("num_scan_inputs");
    require(slices > 0 && slices <= static_cast<int64_t>(node.inputs().size()),
            "num_scan_inputs is {} with {} inputs", slices, node.inputs().size());
    Layout layout;
    layout.slices = static_cast<size_t>(slices);
    layout.states = node.inputs().size() - layout.slices;
    require(node.outputs().size() >= layout.states, "{} states but {} outputs", layout.states,
            node.outputs().size());
    layout.results = node.outputs().size() - layout.states;
    require(body.inputs().size() == node.inputs().size(), "the body takes {} inputs, expected {}",
            body.inputs().size(), node.inputs().size());
    require(body.outputs().size() == node.outputs().size(), "the body gives {} results, expected {}",
            body.outputs().size(), node.outputs().size());
    layout.input_axes = list_of(node.attributes, "scan_input_axes", layout.slices);
    layout.input_directions = list_of(node.attributes, "scan_input_directions", layout.slices);
    layout.output_axes = list_of(node.attributes, "scan_output_axes", layout.results);
    layout.output_directions = list_of(node.attributes, "scan_output_directions", layout.results);
    return layout;
}

size_t scan_axis(int64_t axis, int64_t rank) {
    require(axis >= -rank && axis < rank, "scan axis {} is out of range for rank {}", axis, rank);
    return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

void infer(InferContext& context) {
    const Graph& body = *context.attributes().get_graph("body");
    const Layout layout = layout_of(context.node(), body);
    std::vector<ValueType> inputs;
    Dim steps;
    for (size_t i = 0; i < layout.states + layout.slices; ++i) {
        ValueType type = context.input(i);
        if (i >= layout.states && type.shape) {
            const size_t axis = scan_axis(layout.input_axes[i - layout.states], context.rank(i));
            if (!steps.known()) steps = (*type.shape)[axis];
            type.shape->erase(type.shape->begin() + static_cast<std::ptrdiff_t>(axis));
        }
        inputs.push_back(std::move(type));
    }
    const std::vector<ValueType> results = context.infer_subgraph(body, inputs);
    for (size_t i = 0; i < results.size(); ++i) {
        ValueType type = results[i];
        if (i < layout.states) {
            type = common_type(type, context.input(i));
        } else if (type.shape) {
            const auto rank = static_cast<int64_t>(type.shape->size()) + 1;
            const size_t axis = scan_axis(layout.output_axes[i - layout.states], rank);
            type.shape->insert(type.shape->begin() + static_cast<std::ptrdiff_t>(axis), steps);
        }
        context.set_output(i, std::move(type));
    }
}

void kernel(KernelContext& context) {
    const Graph& body = *context.attributes().get_graph("body");
    const Layout layout = layout_of(context.node(), body);
    std::vector<Tensor> state;
    for (size_t i = 0; i < layout.states; ++i) state.push_back(context.input(i));
    std::vector<size_t> axes;
    int64_t steps = 0;
    for (size_t i = 0; i < layout.slices; ++i) {
        const Tensor& x = context.input(layout.states + i);
        axes.push_back(scan_axis(layout.input_axes[i], x.rank()));
        require(i == 0 || x.shape()[axes[i]] == steps, "scan inputs have {} and {} steps", steps,
                x.shape()[axes[i]]);
        steps = x.shape()[axes[i]];
    }
    std::vector<std::vector<Tensor>> scanned(layout.results);
    for (int64_t step = 0; step < steps; ++step) {
        std::vector<Tensor> arguments = state;
        for (size_t i = 0; i < layout.slices; ++i) {
            const int64_t index = layout.input_directions[i] == 0 ? step : steps - 1 - step;
            arguments.push_back(take_slice(context.input(layout.states + i), axes[i], index));
        }
        std::vector<Tensor> results = context.run_subgraph(body, std::move(arguments));
        for (size_t i = 0; i < layout.states; ++i) state[i] = std::move(results[i]);
        for (size_t i = 0; i < layout.results; ++i)
            scanned[i].push_back(std::move(results[layout.states + i]));
    }
    for (size_t i = 0; i < layout.states; ++i) context.set_output(i, std::move(state[i]));
    for (size_t i = 0; i < layout.results; ++i) {
        const ValueType& type = body.outputs()[layout.states + i].value->type;
        const auto rank = static_cast<int64_t>(scanned[i].empty() ? type.shape.value_or(Dims()).size()
                                                                  : scanned[i][0].shape().size());
        const size_t axis = scan_axis(layout.output_axes[i], rank + 1);
        if (layout.output_directions[i] != 0) std::reverse(scanned[i].begin(), scanned[i].end());
        context.set_output(layout.states + i,
                           scanned[i].empty() ? empty_stack(type, axis) : stack(scanned[i], axis));
    }
}

KILTER_OP({.name = "Scan",
           .max_inputs = kVariadic,
           .max_outputs = kVariadic,
           .attributes = {{"body", AttributeKind::graph, true},
                          {"num_scan_inputs", AttributeKind::integer, true},
                          {"scan_input_axes", AttributeKind::integers},
                          {"scan_input_directions", AttributeKind::integers},
                          {"scan_output_axes", AttributeKind::integers},
                          {"scan_output_directions", AttributeKind::integers}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::scan_op
