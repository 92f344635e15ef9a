#include "formats/onnx/names.h"

#include "base/fail.h"

namespace kilter::onnx {

Names::Names(const Graph& graph, const Names* outer) {
    // What comes from outside and the inputs have fixed names; those of a sub-graph's inputs matter to nobody
    // else.
    for (const Value* capture : graph.captures()) {
        const std::string& name = (*outer)(capture->outer());
        names_.emplace(capture, name);
        taken_.insert(name);
    }
    for (const Value* input : graph.inputs()) names_.emplace(input, unused(input->name()));

    for (const Graph::Output& output : graph.outputs()) {
        const Value* value = output.value;
        const auto known = names_.find(value);
        if (known != names_.end() && known->second == output.name) {
            outputs_.push_back(output.name);
            continue;
        }
        const bool free = !taken_.contains(output.name);
        require(free || outer != nullptr, "output '{}' has the name of another value", output.name);
        outputs_.push_back(unused(output.name));
        const bool can_take_the_name =
            value->producer() != nullptr || (value->is_constant() && value->name() == output.name);
        if (known == names_.end() && can_take_the_name)
            names_.emplace(value, outputs_.back());
        else
            copies_.emplace_back(value, outputs_.back());
    }
    for (const Value* value : graph.values())
        if (!names_.contains(value)) names_.emplace(value, unused(value->name()));
}

const std::string& Names::operator()(const Value* value) const {
    static const std::string absent;
    if (value == nullptr) return absent;
    const auto found = names_.find(value);
    require(found != names_.end(), "internal error: '{}' belongs to another graph", value->name());
    return found->second;
}

std::string Names::unused(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
    return name;
}

}  // namespace kilter::onnx
