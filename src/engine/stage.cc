#include "engine/stage.h"

#include <omp.h>

#include <algorithm>
#include <exception>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "engine/micro_batch.h"
#include "engine/ref/executor.h"
#include "graph/extract.h"
#include "ops/broadcast.h"

namespace kilter::engine {
namespace {

// Shapes seen lately; a service with many sequence lengths should bucket them, but must not grow without bound.
constexpr size_t kMostPlans = 32;

std::vector<ValueType> types_of(const std::vector<Tensor>& tensors) {
    std::vector<ValueType> types;
    for (const Tensor& tensor : tensors) types.push_back(ValueType::of(tensor));
    return types;
}

void show(Observer& observer, const Value& value, const Tensor& tensor) {
    if (tensor.dtype() != DType::f32) return;
    observer.observe({value.name(), value.producer(), tensor.as<float>().data(), tensor.shape(),
                      row_major_strides(tensor.shape())});
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

}  // namespace

struct Stage::Entry {
    std::vector<Tensor> shapes;  // views without data: the key
    bool observed = false;       // the plan shows its values to an observer; part of the key
    Plan plan;
    std::vector<const Value*> computed;     // what the plan computes, in the order of its outputs
    std::vector<Tensor> constants;          // by value id, folded for these shapes
    std::vector<const Node*> dynamic;       // run after the plan, through the reference kernels
    std::unique_ptr<Stage> tail;            // the rest, or null
    std::vector<const Value*> tail_inputs;  // values of this stage's graph
    std::vector<const Value*> tail_outputs;
    std::shared_ptr<Entry>
        micro;  // when set, the batch runs in slices through this one and nothing else here is used
    int64_t slices = 1;
    int lanes = 1;  // slices that run side by side
    std::mutex mutex;
    std::vector<std::unique_ptr<Execution>> idle;
};

// A sub-graph: what it captures becomes further inputs.
struct Stage::Body {
    std::unique_ptr<Stage> stage;
    std::vector<const Value*> captured;  // values of the enclosing graph
    std::vector<size_t> results;         // which result of the stage each output is

    std::vector<Tensor> run(std::vector<Tensor> inputs, const ref::Lookup& find) const {
        for (const Value* value : captured) inputs.push_back(find(*value));
        const std::vector<Tensor> computed = stage->run(inputs);
        std::vector<Tensor> outputs;
        for (const size_t index : results) outputs.push_back(computed[index]);
        return outputs;
    }
};

Stage::~Stage() = default;

Stage::Stage(Graph graph, EngineOptions options, std::shared_ptr<WeightStore> weights, bool part)
    : graph_(std::move(graph)), options_(options), weights_(std::move(weights)), part_(part) {
    if (options_.threads <= 0) options_.threads = omp_get_max_threads();
}

std::shared_ptr<Stage::Entry> Stage::entry(const std::vector<Tensor>& inputs, bool observed) {
    const std::lock_guard lock(mutex_);
    for (auto position = entries_.begin(); position != entries_.end(); ++position) {
        const std::vector<Tensor>& shapes = (*position)->shapes;
        if ((*position)->observed == observed &&
            std::ranges::equal(shapes, inputs, [](const Tensor& a, const Tensor& b) {
                return a.dtype() == b.dtype() && a.shape() == b.shape();
            })) {
            entries_.splice(entries_.begin(), entries_, position);
            return entries_.front();
        }
    }
    entries_.push_front(compile(inputs, observed));
    entries_.front()->observed = observed;
    if (entries_.size() > kMostPlans) entries_.pop_back();
    return entries_.front();
}

std::shared_ptr<Stage::Entry> Stage::compile(const std::vector<Tensor>& inputs, bool observed) const {
    Specialized known = specialize(graph_, types_of(inputs));
    const int64_t batch = inputs.empty() || inputs[0].rank() == 0 ? 0 : inputs[0].dim(0);
    const Slicing slicing =
        options_.reference ? Slicing{batch, 1} : micro_batch(graph_, known, options_.threads);
    if (slicing.size <= 0 || slicing.size == batch)
        return compile_whole(inputs, std::move(known), options_.threads, observed);
    auto made = std::make_shared<Entry>();
    std::vector<Tensor> part;
    for (const Tensor& tensor : inputs) {
        made->shapes.push_back(
            Tensor::view(tensor.dtype(), tensor.shape(), static_cast<const void*>(nullptr)));
        Shape shape = tensor.shape();
        shape[0] = slicing.size;
        part.push_back(Tensor::view(tensor.dtype(), std::move(shape), static_cast<const void*>(nullptr)));
    }
    made->micro = compile_whole(part, specialize(graph_, types_of(part)),
                                slicing.lanes > 1 ? 1 : options_.threads, observed);
    made->slices = batch / slicing.size;
    made->lanes = slicing.lanes;
    return made;
}

std::shared_ptr<Stage::Entry> Stage::compile_whole(const std::vector<Tensor>& inputs, Specialized known,
                                                   int threads, bool observed) const {
    const ThreadScope scope(threads);  // oneDNN divides the work of a primitive when it is made
    EngineOptions options = options_;
    options.threads = threads;
    auto made = std::make_shared<Entry>();
    for (const Tensor& tensor : inputs)
        made->shapes.push_back(
            Tensor::view(tensor.dtype(), tensor.shape(), static_cast<const void*>(nullptr)));

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
            extract(graph_, known.rest, made->tail_inputs, made->tail_outputs), options_, weights_, true);
    }
    const Builder::Observe observe = !observed ? Builder::Observe::nothing
                                     : part_   ? Builder::Observe::results
                                               : Builder::Observe::everything;
    made->plan = Builder(graph_, known, *weights_, options).build(wanted, Borders::row_major, observe);
    made->computed = std::move(wanted);
    made->constants = std::move(known.constants);
    made->dynamic = std::move(known.dynamic);
    return made;
}

Stage::Body& Stage::body(const Graph& graph) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Body>& known = bodies_[&graph];
    if (known != nullptr) return *known;
    auto made = std::make_unique<Body>();
    std::vector<const Node*> nodes;
    for (const auto& node : graph.nodes()) nodes.push_back(node.get());
    std::vector<const Value*> inputs(graph.inputs().begin(), graph.inputs().end());
    for (const Value* capture : graph.captures()) {
        if (graph.constant(origin(capture)) != nullptr) continue;
        inputs.push_back(capture);
        made->captured.push_back(capture->outer());
    }
    std::vector<const Value*> outputs;
    for (const Graph::Output& output : graph.outputs()) {
        const auto place = std::ranges::find(outputs, output.value);
        made->results.push_back(static_cast<size_t>(place - outputs.begin()));
        if (place == outputs.end()) outputs.push_back(output.value);
    }
    made->stage = std::make_unique<Stage>(extract(graph, nodes, inputs, outputs), options_, weights_, true);
    known = std::move(made);
    return *known;
}

std::vector<Tensor> Stage::run(const std::vector<Tensor>& inputs, Observer* observer) {
    return run(inputs, Audience{.observer = observer});
}

void Stage::profile(const std::vector<Tensor>& inputs, int repetitions, std::vector<StepReport>& reports) {
    run(inputs, Audience{.repetitions = repetitions, .reports = &reports});
}

size_t Stage::arena_bytes(const std::vector<Tensor>& inputs) {
    const std::shared_ptr<Entry> current = entry(inputs, false);
    if (current->micro == nullptr) return current->plan.arena_bytes;
    return current->micro->plan.arena_bytes * static_cast<size_t>(current->lanes);
}

// Runs the plan of `entry` into `outputs`, which are allocated here when there are none yet.
void Stage::execute(Entry& entry, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                    const Audience& audience) {
    std::unique_ptr<Execution> execution;
    {
        const std::lock_guard lock(entry.mutex);
        if (!entry.idle.empty()) {
            execution = std::move(entry.idle.back());
            entry.idle.pop_back();
        }
    }
    const Plan& plan = entry.plan;
    if (execution == nullptr) execution = std::make_unique<Execution>(plan);
    for (size_t i = 0; i < inputs.size(); ++i)
        execution->set_external(plan.input_buffers[i],
                                const_cast<void*>(inputs[i].raw()));  // NOLINT: only read
    for (size_t i = 0; i < plan.output_buffers.size(); ++i) {
        if (outputs.size() <= i)
            outputs.emplace_back(plan.output_types[i].dtype, plan.output_types[i].static_shape());
        execution->set_external(plan.output_buffers[i], outputs[i].raw_mutable());
    }
    execution->observer = audience.observer;
    if (audience.reports == nullptr) {
        execution->run();
    } else {
        std::vector<std::vector<double>> times(plan.steps.size());
        for (int i = 0; i < audience.repetitions; ++i) {
            const std::vector<double> run = execution->run_timed();
            for (size_t step = 0; step < run.size(); ++step) times[step].push_back(run[step]);
        }
        for (size_t i = 0; i < plan.steps.size(); ++i) {
            const Step& step = *plan.steps[i];
            audience.reports->push_back({step.name, step.op, step.kernel, step.shape, median(times[i])});
        }
    }
    const std::lock_guard lock(entry.mutex);
    entry.idle.push_back(std::move(execution));
}

std::vector<Tensor> Stage::run_micro_batches(Entry& whole, const std::vector<Tensor>& inputs,
                                             const Audience& audience) {
    Entry& part = *whole.micro;
    const auto slice = [](const Tensor& tensor, const Shape& shape, int64_t index) {
        const size_t bytes = byte_count(tensor.dtype(), element_count(shape));
        const char* data = static_cast<const char*>(tensor.raw()) + static_cast<size_t>(index) * bytes;
        return Tensor::view(tensor.dtype(), shape, const_cast<char*>(data));  // NOLINT: inputs are only read
    };
    // The plan may list its results in another order than the graph, each once.
    std::vector<Tensor> computed;
    for (const ValueType& type : part.plan.output_types) {
        Shape shape = type.static_shape();
        shape[0] *= whole.slices;
        computed.emplace_back(type.dtype, shape);
    }
    const auto run_slice = [&](int64_t index) {
        std::vector<Tensor> from;
        std::vector<Tensor> to;
        for (size_t i = 0; i < inputs.size(); ++i)
            from.push_back(slice(inputs[i], part.shapes[i].shape(), index));
        for (size_t i = 0; i < computed.size(); ++i)
            to.push_back(slice(computed[i], part.plan.output_types[i].static_shape(), index));
        Audience here = audience;
        if (index != 0) here.reports = nullptr;
        execute(part, from, to, here);
    };
    // Inside a parallel region every parallel loop of a kernel runs on the thread that meets it.
    std::exception_ptr failure;
#pragma omp parallel for num_threads(whole.lanes) schedule(static) if (whole.lanes > 1)
    for (int64_t index = 0; index < whole.slices; ++index) {
        try {
            run_slice(index);
        } catch (...) {
#pragma omp critical(kilter_slice_failed)
            failure = std::current_exception();
        }
    }
    if (failure != nullptr) std::rethrow_exception(failure);
    // Every slice takes the same time: the report speaks of the whole batch.
    if (audience.reports != nullptr)
        for (StepReport& report : *audience.reports)
            report.milliseconds *= static_cast<double>(whole.slices) / whole.lanes;
    std::vector<Tensor> outputs;
    for (const Graph::Output& output : graph_.outputs()) {
        const auto place = std::ranges::find(part.computed, output.value) - part.computed.begin();
        outputs.push_back(computed[static_cast<size_t>(place)]);
    }
    return outputs;
}

std::vector<Tensor> Stage::run(const std::vector<Tensor>& inputs, const Audience& audience) {
    const std::shared_ptr<Entry> current = entry(inputs, audience.observer != nullptr);
    if (current->micro != nullptr) return run_micro_batches(*current, inputs, audience);
    std::vector<Tensor> computed;
    execute(*current, inputs, computed, audience);

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
    const ref::RunBody run_body = [&](const Graph& graph, const std::vector<Tensor>& arguments) {
        return body(graph).run(arguments, find);
    };
    for (const Node* node : current->dynamic) {
        std::vector<Tensor> arguments;
        for (const Value* value : node->inputs())
            arguments.push_back(value == nullptr ? Tensor() : find(*value));
        std::vector<Tensor> results =
            ref::run_node(*node, arguments, find, options_.reference ? ref::RunBody() : run_body);
        for (size_t i = 0; i < results.size(); ++i) {
            const Value* value = node->output(i);
            if (value == nullptr) continue;
            if (audience.observer != nullptr) show(*audience.observer, *value, results[i]);
            values[value] = std::move(results[i]);
        }
        if (audience.reports != nullptr)
            audience.reports->push_back(
                {node->name, node->op(), node->subgraphs().empty() ? "ref" : "sub-graph", "dynamic", 0});
    }
    if (current->tail != nullptr) {
        std::vector<Tensor> arguments;
        for (const Value* value : current->tail_inputs) arguments.push_back(find(*value));
        std::vector<Tensor> results = current->tail->run(arguments, audience);
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
