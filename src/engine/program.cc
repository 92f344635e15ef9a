#include "kilter/engine/program.h"

#include <sched.h>

#include <algorithm>

#include "base/fail.h"
#include "engine/stage.h"
#include "kilter/passes/passes.h"
#include "passes/list.h"

namespace kilter {

int available_cores() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
    return 1;
}

struct Program::State {
    EngineOptions options;
    std::vector<Port> inputs, outputs;
    std::unique_ptr<engine::Stage> stage;

    void check(const std::vector<Tensor>& given) const;
};

void Program::State::check(const std::vector<Tensor>& given) const {
    require(given.size() == inputs.size(), "the model takes {} inputs, {} were given", inputs.size(),
            given.size());
    std::vector<std::pair<std::string, int64_t>> symbols;
    for (size_t i = 0; i < given.size(); ++i) {
        const Port& port = inputs[i];
        const Tensor& tensor = given[i];
        require(!tensor.empty(), "input '{}' is missing", port.name);
        const ValueType found = ValueType::of(tensor);
        require(port.type.dtype == DType::undefined || port.type.dtype == found.dtype,
                "input '{}' takes {} but {} was given", port.name, name(port.type.dtype), name(found.dtype));
        if (!port.type.shape) continue;
        require(port.type.shape->size() == found.shape->size(), "input '{}' takes shape {} but {} was given",
                port.name, to_string(*port.type.shape), to_string(*found.shape));
        for (size_t axis = 0; axis < found.shape->size(); ++axis) {
            const Dim& wanted = (*port.type.shape)[axis];
            const int64_t size = (*found.shape)[axis].value;
            require(!wanted.known() || wanted.value == size, "input '{}' takes shape {} but {} was given",
                    port.name, to_string(*port.type.shape), to_string(*found.shape));
            if (wanted.known() || wanted.symbol.empty()) continue;
            const auto known =
                std::ranges::find(symbols, wanted.symbol, &std::pair<std::string, int64_t>::first);
            if (known == symbols.end())
                symbols.emplace_back(wanted.symbol, size);
            else
                require(known->second == size,
                        "input '{}': dimension '{}' is {} here but {} in an input before it", port.name,
                        wanted.symbol, size, known->second);
        }
    }
}

Program::Program(Model model, EngineOptions options) : state_(std::make_unique<State>()) {
    if (options.threads <= 0) options.threads = available_cores();
    state_->options = options;
    try {
        canonicalize(model);
        infer_types(model.graph);
        verify(model.graph);
        for (const Value* value : model.graph.inputs())
            state_->inputs.push_back({value->name(), value->type});
        if (options.optimize) optimize(model.graph);
        if (!options.reference && !engine::has_bf16()) widen_bf16(model.graph);
        for (const Graph::Output& output : model.graph.outputs()) {
            const ValueType& inferred = output.value->type;
            state_->outputs.push_back(
                {output.name, inferred.dtype == DType::undefined ? output.type : inferred});
        }
    } catch (const Error& error) {
        if (model.source.empty()) throw;
        throw error.in(model.source);
    }
    state_->stage = std::make_unique<engine::Stage>(std::move(model.graph), options,
                                                    std::make_shared<engine::WeightStore>());
}

Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

const std::vector<Port>& Program::inputs() const { return state_->inputs; }
const std::vector<Port>& Program::outputs() const { return state_->outputs; }
const EngineOptions& Program::options() const { return state_->options; }
const Graph& Program::graph() const { return state_->stage->graph(); }

std::vector<Tensor> Program::run(const std::vector<Tensor>& inputs) const {
    state_->check(inputs);
    const engine::ThreadScope threads(state_->options.threads);
    return state_->stage->run(inputs);
}

std::vector<Tensor> Program::run(const std::vector<Tensor>& inputs, Observer& observer) const {
    state_->check(inputs);
    const engine::ThreadScope threads(state_->options.threads);
    return state_->stage->run(inputs, &observer);
}

std::vector<StepReport> Program::profile(const std::vector<Tensor>& inputs, int repetitions) const {
    state_->check(inputs);
    const engine::ThreadScope threads(state_->options.threads);
    state_->stage->run(inputs);
    std::vector<StepReport> reports;
    state_->stage->profile(inputs, std::max(repetitions, 1), reports);
    return reports;
}

size_t Program::arena_bytes(const std::vector<Tensor>& inputs) const {
    state_->check(inputs);
    const engine::ThreadScope threads(state_->options.threads);
    return state_->stage->arena_bytes(inputs);
}

}  // namespace kilter
