#include "engine/ref_step.h"

#include <cstring>

#include "base/fail.h"
#include "engine/ref/executor.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

class StepContext : public KernelContext {
  public:
    StepContext(const Node& node, std::vector<Tensor> inputs, std::vector<Tensor> outputs)
        : KernelContext(node), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

    const Tensor& input(size_t index) const override { return inputs_[index]; }

    Tensor& output(size_t index, DType dtype, const Shape& shape) override {
        if (index >= outputs_.size() || outputs_[index].empty()) {
            unwanted_.push_back(std::make_unique<Tensor>(dtype, shape));
            return *unwanted_.back();
        }
        Tensor& prepared = outputs_[index];
        require(prepared.dtype() == dtype && prepared.shape() == shape,
                "internal error: the shape rule promised {} {} but the kernel made {} {}",
                name(prepared.dtype()), to_string(prepared.shape()), name(dtype), to_string(shape));
        return prepared;
    }

    void set_output(size_t index, Tensor tensor) override {
        if (index >= outputs_.size() || outputs_[index].empty()) return;
        Tensor& prepared = output(index, tensor.dtype(), tensor.shape());
        if (tensor.bytes() > 0) std::memmove(prepared.raw_mutable(), tensor.raw(), tensor.bytes());
    }

    std::vector<Tensor> run_subgraph(const Graph&, std::vector<Tensor>) override {
        fail("internal error: a sub-graph in a static plan");
    }

  private:
    std::vector<Tensor> inputs_, outputs_;
    std::vector<std::unique_ptr<Tensor>> unwanted_;
};

class ReferenceStep : public Step {
  public:
    ReferenceStep(const Node& node, std::vector<Array> inputs, std::vector<Array> outputs)
        : node_(node), definition_(find_op(node)) {
        if (definition_ == nullptr || definition_->kernel == nullptr) ref::refuse(node);
        reads = std::move(inputs);
        writes = std::move(outputs);
        kernel = "ref";
    }

    void run(Execution& execution, size_t) const override {
        const auto tensors = [&](const std::vector<Array>& arrays) {
            std::vector<Tensor> result;
            for (const Array& array : arrays)
                result.push_back(array.valid() ? execution.tensor(array) : Tensor());
            return result;
        };
        StepContext context(node_, tensors(reads), tensors(writes));
        try {
            definition_->kernel(context);
        } catch (const Error& error) {
            throw error.in(describe(node_));
        }
    }

  private:
    const Node& node_;
    const OpDefinition* definition_;
};

}  // namespace

std::unique_ptr<Step> make_reference_step(const Node& node, std::vector<Array> inputs,
                                          std::vector<Array> outputs) {
    return std::make_unique<ReferenceStep>(node, std::move(inputs), std::move(outputs));
}

}  // namespace kilter::engine
