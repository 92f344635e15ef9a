// Loop: a sub-graph run while a condition holds, up to a trip count; it carries values and stacks what it
// scans out.
// Inputs: trip count?, condition?, carried values. Body: (iteration, condition, carried…) -> (condition,
// carried…, scanned…).
#include <limits>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/control_flow.h"

namespace kilter::loop_op {

size_t carried_count(size_t inputs) { return inputs > 2 ? inputs - 2 : 0; }

void check_body(const Graph& body, size_t carried, size_t outputs) {
    require(body.inputs().size() == 2 + carried, "the body takes {} inputs, expected {}",
            body.inputs().size(), 2 + carried);
    require(body.outputs().size() == 1 + outputs && outputs >= carried,
            "the body gives {} results for {} outputs and {} carried values", body.outputs().size(), outputs,
            carried);
}

void infer(InferContext& context) {
    const Graph& body = *context.attributes().get_graph("body");
    const size_t carried = carried_count(context.input_count());
    check_body(body, carried, context.output_count());
    std::vector<ValueType> inputs{{DType::i64, {}}, {DType::boolean, {}}};
    // Carried values may change their shape from one iteration to the next.
    for (size_t i = 0; i < carried; ++i) {
        require(context.has_input(2 + i), "carried value {} is missing", i);
        inputs.emplace_back();
        inputs.back().dtype = context.dtype(2 + i);
    }
    const std::vector<ValueType> results = context.infer_subgraph(body, inputs);
    for (size_t i = 0; i < context.output_count(); ++i) {
        ValueType type = results[1 + i];
        if (i < carried)
            type = common_type(type, context.input(2 + i));
        else if (type.shape)
            type.shape->insert(type.shape->begin(), Dim());
        context.set_output(i, std::move(type));
    }
}

bool read_condition(const Tensor& condition) {
    require(condition.dtype() == DType::boolean && condition.size() == 1,
            "the condition must be one bool, not {} of {}", condition.size(), name(condition.dtype()));
    return load_int(DType::boolean, condition.raw(), 0) != 0;
}

void kernel(KernelContext& context) {
    const Graph& body = *context.attributes().get_graph("body");
    const size_t carried = carried_count(context.input_count());
    check_body(body, carried, context.output_count());
    int64_t trips = std::numeric_limits<int64_t>::max();
    if (context.has_input(0)) {
        require(context.input(0).size() == 1, "the trip count must be one number");
        trips = context.input(0).to_ints()[0];
    }
    const bool conditional = context.has_input(1);
    require(conditional || context.has_input(0), "a loop with neither trip count nor condition never ends");
    bool goes_on = !conditional || read_condition(context.input(1));
    std::vector<Tensor> state;
    for (size_t i = 0; i < carried; ++i) state.push_back(context.input(2 + i));
    std::vector<std::vector<Tensor>> scanned(context.output_count() - carried);
    for (int64_t trip = 0; trip < trips && goes_on; ++trip) {
        std::vector<Tensor> arguments{Tensor::scalar<int64_t>(trip), Tensor::scalar<bool>(true)};
        arguments.insert(arguments.end(), state.begin(), state.end());
        std::vector<Tensor> results = context.run_subgraph(body, std::move(arguments));
        if (conditional) goes_on = read_condition(results[0]);
        for (size_t i = 0; i < carried; ++i) state[i] = std::move(results[1 + i]);
        for (size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back(std::move(results[1 + carried + i]));
    }
    for (size_t i = 0; i < carried; ++i) context.set_output(i, std::move(state[i]));
    for (size_t i = 0; i < scanned.size(); ++i) {
        const Graph::Output& output = body.outputs()[1 + carried + i];
        const ValueType& type =
            output.value->type.dtype != DType::undefined ? output.value->type : output.type;
        context.set_output(carried + i, scanned[i].empty() ? empty_stack(type, 0) : stack(scanned[i], 0));
    }
}

KILTER_OP({.name = "Loop",
           .min_inputs = 0,
           .max_inputs = kVariadic,
           .min_outputs = 0,
           .max_outputs = kVariadic,
           .attributes = {{"body", AttributeKind::graph, true}},
           .infer = infer,
           .kernel = kernel,
           .tensors_only = false});

}  // namespace kilter::loop_op
