#include "engine/ref/executor.h"

#include "base/fail.h"
#include "ops/op.h"

namespace kilter::ref {
namespace {

using Observer = std::function<void(const Value&, const Tensor&)>;

std::vector<Tensor> run_graph(const Graph& graph, const std::vector<Tensor>& inputs, const Lookup& lookup,
                              const Observer& observe);

class NodeExecution : public KernelContext {
  public:
    NodeExecution(const Node& node, const std::vector<Tensor>& inputs, const Lookup& lookup,
                  const RunBody& run_body)
        : KernelContext(node),
          inputs_(inputs),
          outputs_(node.outputs().size()),
          lookup_(lookup),
          run_body_(run_body) {}

    const Tensor& input(size_t index) const override { return inputs_[index]; }

    Tensor& output(size_t index, DType dtype, const Shape& shape) override {
        if (index >= outputs_.size()) outputs_.resize(index + 1);
        outputs_[index] = Tensor(dtype, shape);
        return outputs_[index];
    }

    void set_output(size_t index, Tensor tensor) override {
        if (index >= outputs_.size()) outputs_.resize(index + 1);
        outputs_[index] = std::move(tensor);
    }

    std::vector<Tensor> run_subgraph(const Graph& graph, std::vector<Tensor> inputs) override {
        return run_body_ ? run_body_(graph, inputs) : run_graph(graph, inputs, lookup_, {});
    }

    std::vector<Tensor> take() {
        outputs_.resize(node().outputs().size());
        return std::move(outputs_);
    }

  private:
    const std::vector<Tensor>& inputs_;
    std::vector<Tensor> outputs_;
    const Lookup& lookup_;
    const RunBody& run_body_;
};

std::vector<Tensor> run_graph(const Graph& graph, const std::vector<Tensor>& inputs, const Lookup& lookup,
                              const Observer& observe) {
    std::vector<Tensor> values(static_cast<size_t>(graph.value_limit()));
    require(inputs.size() == graph.inputs().size(), "the graph takes {} inputs, {} were given",
            graph.inputs().size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
        values[static_cast<size_t>(graph.inputs()[i]->id())] = inputs[i];
    const Lookup find = [&](const Value& value) -> Tensor {
        if (const Tensor* constant = graph.constant(&value)) return *constant;
        if (value.outer() != nullptr) return lookup(*value.outer());
        return values[static_cast<size_t>(value.id())];
    };
    std::vector<size_t> readers(values.size(), 0);
    for (const Value* value : graph.values())
        readers[static_cast<size_t>(value->id())] = value->users().size();
    for (const Graph::Output& output : graph.outputs()) ++readers[static_cast<size_t>(output.value->id())];
    for (const auto& node : graph.nodes()) {
        std::vector<Tensor> arguments;
        for (const Value* value : node->inputs())
            arguments.push_back(value == nullptr ? Tensor() : find(*value));
        std::vector<Tensor> results = run_node(*node, arguments, find);
        for (size_t i = 0; i < results.size(); ++i) {
            const Value* value = node->output(i);
            if (value == nullptr) continue;
            if (observe) observe(*value, results[i]);
            values[static_cast<size_t>(value->id())] = std::move(results[i]);
        }
        for (const Value* value : node->inputs())
            if (value != nullptr && readers[static_cast<size_t>(value->id())] > 0 &&
                --readers[static_cast<size_t>(value->id())] == 0)
                values[static_cast<size_t>(value->id())] = Tensor();
    }
    std::vector<Tensor> outputs;
    for (const Graph::Output& output : graph.outputs()) {
        Tensor tensor = find(*output.value);
        require(!tensor.empty(), "output '{}' was not computed", output.name);
        outputs.push_back(std::move(tensor));
    }
    return outputs;
}

}  // namespace

void refuse(const Node& node) {
    // The readers of other formats leave the reason with the operators they cannot translate.
    const bool translated = !node.domain().empty() && !node.doc.empty();
    fail("{}: kilter cannot execute this operator{}{}", describe(node), translated ? ": " : "",
         translated ? node.doc : "");
}

std::vector<Tensor> run_node(const Node& node, const std::vector<Tensor>& inputs, const Lookup& lookup,
                             const RunBody& run_body) {
    const OpDefinition* definition = find_op(node);
    if (definition == nullptr || definition->kernel == nullptr) refuse(node);
    NodeExecution execution(node, inputs, lookup, run_body);
    try {
        for (size_t i = 0; i < inputs.size(); ++i)
            require(!definition->tensors_only || is_element(inputs[i].dtype()),
                    "input {} must be a tensor, found {}", i,
                    inputs[i].dtype() == DType::sequence ? "a sequence" : "an absent optional");
        definition->kernel(execution);
    } catch (const Error& error) {
        throw error.in(describe(node));
    }
    return execution.take();
}

std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs) {
    return run(graph, inputs, {});
}

std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs, const Observer& observe) {
    return run_graph(graph, inputs, {}, observe);
}

}  // namespace kilter::ref
