#include "engine/stage.h"

#include <omp.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "engine/ref/executor.h"
#include "graph/extract.h"

namespace kilter::engine {
namespace {

// Shapes seen lately; a service with many sequence lengths should bucket them, but must not grow without bound.
constexpr size_t kMostPlans = 32;

std::vector<ValueType> types_of(const std::vector<Tensor>& tensors) {
    std::vector<ValueType> types;
    for (const Tensor& tensor : tensors) types.push_back(ValueType::of(tensor));
    return types;
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

}  // namespace

struct Stage::Entry {
    std::vector<Tensor> shapes;  // views without data: the key
    Plan plan;
    std::vector<const Value*> computed;     // what the plan computes, in the order of its outputs
    std::vector<Tensor> constants;          // by value id, folded for these shapes
    std::vector<const Node*> dynamic;       // run after the plan, through the reference kernels
    std::unique_ptr<Stage> tail;            // the rest, or null
    std::vector<const Value*> tail_inputs;  // values of this stage's graph
    std::vector<const Value*> tail_outputs;
    std::mutex mutex;
    std::vector<std::unique_ptr<Execution>> idle;
};

Stage::Stage(Graph graph, EngineOptions options, std::shared_ptr<WeightStore> weights)
    : graph_(std::move(graph)), options_(options), weights_(std::move(weights)) {}

std::shared_ptr<Stage::Entry> Stage::entry(const std::vector<Tensor>& inputs) {
    const std::lock_guard lock(mutex_);
    for (auto position = entries_.begin(); position != entries_.end(); ++position) {
        const std::vector<Tensor>& shapes = (*position)->shapes;
        if (std::ranges::equal(shapes, inputs, [](const Tensor& a, const Tensor& b) {
                return a.dtype() == b.dtype() && a.shape() == b.shape();
            })) {
            entries_.splice(entries_.begin(), entries_, position);
            return entries_.front();
        }
    }
    entries_.push_front(compile(inputs));
    if (entries_.size() > kMostPlans) entries_.pop_back();
    return entries_.front();
}

std::shared_ptr<Stage::Entry> Stage::compile(const std::vector<Tensor>& inputs) const {
    auto made = std::make_shared<Entry>();
    for (const Tensor& tensor : inputs)
        made->shapes.push_back(
            Tensor::view(tensor.dtype(), tensor.shape(), static_cast<const void*>(nullptr)));
    Specialized known = specialize(graph_, types_of(inputs));

    // What must be handed on: outputs of the graph, and what the dynamic part reads.
    std::vector<const Value*> wanted;
    std::unordered_set<const Value*> seen;
    std::unordered_set<const Node*> early(known.nodes.begin(), known.nodes.end());
    const auto is_early = [&](const Value* value) {
        return known.constants[static_cast<size_t>(value->id())].empty() &&
               (value->is_input() || (value->producer() != nullptr && early.contains(value->producer())));
    };
    const auto want = [&](const Value* value) {
        if (is_early(value) && !value->is_input() && seen.insert(value).second) wanted.push_back(value);
    };
    for (const Graph::Output& output : graph_.outputs()) want(output.value);
    for (const Node* node : known.dynamic)
        for (const Value* value : values_read(*node)) want(value);
    for (const Node* node : known.rest)
        for (const Value* value : values_read(*node)) want(value);

    if (!known.rest.empty()) {
        std::unordered_set<const Node*> late(known.rest.begin(), known.rest.end());
        std::unordered_set<const Value*> taken;
        for (const Node* node : known.rest) {
            for (const Value* value : values_read(*node)) {
                if (graph_.constant(value) != nullptr || late.contains(value->producer()) ||
                    !taken.insert(value).second)
                    continue;
                made->tail_inputs.push_back(value);
            }
        }
        for (const Graph::Output& output : graph_.outputs())
            if (output.value->producer() != nullptr && late.contains(output.value->producer()) &&
                std::ranges::find(made->tail_outputs, output.value) == made->tail_outputs.end())
                made->tail_outputs.push_back(output.value);
        made->tail = std::make_unique<Stage>(
            extract(graph_, known.rest, made->tail_inputs, made->tail_outputs), options_, weights_);
    }
    made->plan = Builder(graph_, known, *weights_, options_).build(wanted);
    made->computed = std::move(wanted);
    made->constants = std::move(known.constants);
    made->dynamic = std::move(known.dynamic);
    return made;
}

std::vector<Tensor> Stage::run(const std::vector<Tensor>& inputs) { return run(inputs, 1, nullptr); }

void Stage::profile(const std::vector<Tensor>& inputs, int repetitions, std::vector<StepReport>& reports) {
    run(inputs, repetitions, &reports);
}

size_t Stage::arena_bytes(const std::vector<Tensor>& inputs) { return entry(inputs)->plan.arena_bytes; }

std::vector<Tensor> Stage::run(const std::vector<Tensor>& inputs, int repetitions,
                               std::vector<StepReport>* reports) {
    const std::shared_ptr<Entry> current = entry(inputs);
    std::unique_ptr<Execution> execution;
    {
        const std::lock_guard lock(current->mutex);
        if (!current->idle.empty()) {
            execution = std::move(current->idle.back());
            current->idle.pop_back();
        }
    }
    if (execution == nullptr) execution = std::make_unique<Execution>(current->plan);

    const Plan& plan = current->plan;
    for (size_t i = 0; i < inputs.size(); ++i)
        execution->set_external(plan.input_buffers[i],
                                const_cast<void*>(inputs[i].raw()));  // NOLINT: inputs are only read
    std::vector<Tensor> computed;
    for (size_t i = 0; i < plan.output_buffers.size(); ++i) {
        computed.emplace_back(plan.output_types[i].dtype, plan.output_types[i].static_shape());
        execution->set_external(plan.output_buffers[i], computed.back().raw_mutable());
    }
    if (reports == nullptr) {
        execution->run();
    } else {
        std::vector<std::vector<double>> times(plan.steps.size());
        for (int i = 0; i < repetitions; ++i) {
            const std::vector<double> run = execution->run_timed();
            for (size_t step = 0; step < run.size(); ++step) times[step].push_back(run[step]);
        }
        for (size_t i = 0; i < plan.steps.size(); ++i) {
            const Step& step = *plan.steps[i];
            reports->push_back({step.name, step.op, step.kernel, step.shape, median(times[i])});
        }
    }
    {
        const std::lock_guard lock(current->mutex);
        current->idle.push_back(std::move(execution));
    }

    std::unordered_map<const Value*, Tensor> values;
    for (size_t i = 0; i < computed.size(); ++i) values[current->computed[i]] = std::move(computed[i]);
    for (size_t i = 0; i < inputs.size(); ++i) values[graph_.inputs()[i]] = inputs[i];
    const auto find = [&](const Value& value) -> Tensor {
        if (const Tensor& constant = current->constants[static_cast<size_t>(value.id())]; !constant.empty())
            return constant;
        const auto entry = values.find(&value);
        require(entry != values.end(), "internal error: value '{}' was not computed", value.name());
        return entry->second;
    };
    for (const Node* node : current->dynamic) {
        std::vector<Tensor> arguments;
        for (const Value* value : node->inputs())
            arguments.push_back(value == nullptr ? Tensor() : find(*value));
        std::vector<Tensor> results = ref::run_node(*node, arguments, find);
        for (size_t i = 0; i < results.size(); ++i)
            if (const Value* value = node->output(i)) values[value] = std::move(results[i]);
        if (reports != nullptr) reports->push_back({node->name, node->op(), "ref", "dynamic", 0});
    }
    if (current->tail != nullptr) {
        std::vector<Tensor> arguments;
        for (const Value* value : current->tail_inputs) arguments.push_back(find(*value));
        std::vector<Tensor> results = current->tail->run(arguments, repetitions, reports);
        for (size_t i = 0; i < results.size(); ++i) values[current->tail_outputs[i]] = std::move(results[i]);
    }
    std::vector<Tensor> outputs;
    for (const Graph::Output& output : graph_.outputs()) outputs.push_back(find(*output.value));
    // A result that is an input or a constant of the model must not share its memory.
    for (size_t i = 0; i < outputs.size(); ++i) {
        const Value* value = graph_.outputs()[i].value;
        if (value->is_input() || !current->constants[static_cast<size_t>(value->id())].empty())
            outputs[i] = outputs[i].clone();
    }
    return outputs;
}

ThreadScope::ThreadScope(int threads) : before_(omp_get_max_threads()) {
    if (threads != before_) omp_set_num_threads(threads);
}

ThreadScope::~ThreadScope() {
    if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}

}  // namespace kilter::engine
