// If: the outputs of one of two sub-graphs.
#include "base/convert.h"
#include "base/fail.h"
#include "ops/control_flow.h"

namespace kilter::if_op {

void infer(InferContext& context) {
    const Graph& then_branch = *context.attributes().get_graph("then_branch");
    const Graph& else_branch = *context.attributes().get_graph("else_branch");
    const std::vector<ValueType> first = context.infer_subgraph(then_branch, {});
    const std::vector<ValueType> second = context.infer_subgraph(else_branch, {});
    require(first.size() == context.output_count() && second.size() == context.output_count(),
            "branches give {} and {} results for {} outputs", first.size(), second.size(),
            context.output_count());
    for (size_t i = 0; i < first.size(); ++i) context.set_output(i, common_type(first[i], second[i]));
}

void kernel(KernelContext& context) {
    const Tensor& condition = context.input(0);
    require(condition.dtype() == DType::boolean && condition.size() == 1,
            "the condition must be one bool, not {} of {}", condition.size(), name(condition.dtype()));
    const bool holds = load_int(DType::boolean, condition.raw(), 0) != 0;
    std::vector<Tensor> results =
        context.run_subgraph(*context.attributes().get_graph(holds ? "then_branch" : "else_branch"), {});
    require(results.size() == context.output_count(), "the branch gives {} results for {} outputs",
            results.size(), context.output_count());
    for (size_t i = 0; i < results.size(); ++i) context.set_output(i, std::move(results[i]));
}

KILTER_OP({.name = "If",
           .max_outputs = kVariadic,
           .attributes = {{"then_branch", AttributeKind::graph, true},
                          {"else_branch", AttributeKind::graph, true}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::if_op
