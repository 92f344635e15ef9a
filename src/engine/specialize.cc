#include "engine/specialize.h"

#include <algorithm>

#include "engine/ref/executor.h"
#include "graph/extract.h"
#include "ops/op.h"
#include "ops/shape_data.h"

namespace kilter::engine {
namespace {

// Results of folding above this size are left to run time: it is no longer shape arithmetic.
constexpr int64_t kLargestFold = 1 << 20;

class ShapeRule : public InferContext {
  public:
    ShapeRule(const Node& node, const Specialized& known)
        : InferContext(node), known_(known), results(node.outputs().size()) {}

    const ValueType& input(size_t index) const override { return known_.types[id(index)]; }

    const Tensor* constant(size_t index) const override {
        if (node().input(index) == nullptr) return nullptr;
        const Tensor& tensor = known_.constants[id(index)];
        return tensor.empty() ? nullptr : &tensor;
    }

    std::optional<Dims> shape_data(size_t index) const override {
        const Tensor* tensor = constant(index);
        if (tensor == nullptr || tensor->rank() > 1 || !is_integer(tensor->dtype())) return std::nullopt;
        Dims data;
        for (const int64_t entry : tensor->to_ints()) data.push_back(data_entry(entry));
        return data;
    }

    void set_output(size_t index, ValueType type) override {
        if (index < results.size()) results[index] = std::move(type);
    }

    void set_shape_data(size_t, Dims) override {}

    std::vector<ValueType> infer_subgraph(const Graph& body, const std::vector<ValueType>&) override {
        return std::vector<ValueType>(body.outputs().size());
    }

  private:
    size_t id(size_t index) const { return static_cast<size_t>(node().input(index)->id()); }
    const Specialized& known_;

  public:
    std::vector<ValueType> results;
};

bool can_fold(const Node& node, const Specialized& known) {
    const OpDefinition* definition = find_op(node);
    if (definition == nullptr || definition->kernel == nullptr || !definition->deterministic) return false;
    if (!node.subgraphs().empty()) return false;
    return std::ranges::all_of(node.inputs(), [&](const Value* value) {
        return value == nullptr || !known.constants[static_cast<size_t>(value->id())].empty();
    });
}

std::vector<Tensor> fold(const Node& node, const Specialized& known) {
    std::vector<Tensor> inputs;
    for (const Value* value : node.inputs())
        inputs.push_back(value == nullptr ? Tensor() : known.constants[static_cast<size_t>(value->id())]);
    return ref::run_node(node, inputs);
}

bool small(const Node& node, const std::vector<ValueType>& types) {
    return std::ranges::all_of(node.outputs(), [&](const Value* value) {
        if (value == nullptr) return true;
        return element_count(types[static_cast<size_t>(value->producer_index())].static_shape()) <=
               kLargestFold;
    });
}

}  // namespace

Specialized specialize(const Graph& graph, const std::vector<ValueType>& input_types) {
    Specialized known;
    known.types.resize(static_cast<size_t>(graph.value_limit()));
    known.constants.resize(static_cast<size_t>(graph.value_limit()));
    for (const Value* value : graph.values()) {
        if (const Tensor* constant = graph.constant(value)) {
            known.types[static_cast<size_t>(value->id())] = ValueType::of(*constant);
            known.constants[static_cast<size_t>(value->id())] = *constant;
        }
    }
    for (size_t i = 0; i < input_types.size(); ++i)
        known.types[static_cast<size_t>(graph.inputs()[i]->id())] = input_types[i];

    std::vector<char> late(static_cast<size_t>(graph.value_limit()),
                           0);  // values that only `dynamic` or `rest` compute
    for (const auto& owned : graph.nodes()) {
        const Node& node = *owned;
        const bool waits = std::ranges::any_of(values_read(node), [&](const Value* value) {
            return late[static_cast<size_t>(value->id())] != 0;
        });
        ShapeRule rule(node, known);
        if (!waits) infer_node(rule);
        const bool known_shapes = !waits && node.subgraphs().empty() &&
                                  std::ranges::all_of(node.outputs(), [&](const Value* value) {
                                      if (value == nullptr) return true;
                                      const ValueType& type =
                                          rule.results[static_cast<size_t>(value->producer_index())];
                                      return type.is_static() && bits(type.dtype) > 0;
                                  });
        // Strings and sequences: only the reference kernels can read them.
        const bool reads_lists = std::ranges::any_of(values_read(node), [&](const Value* value) {
            return bits(known.types[static_cast<size_t>(value->id())].dtype) == 0;
        });
        const bool foldable = !waits && can_fold(node, known);
        if (foldable && (!known_shapes || small(node, rule.results))) {
            std::vector<Tensor> results = fold(node, known);
            for (size_t i = 0; i < results.size(); ++i) {
                const Value* value = node.output(i);
                if (value == nullptr) continue;
                known.types[static_cast<size_t>(value->id())] = ValueType::of(results[i]);
                known.constants[static_cast<size_t>(value->id())] = std::move(results[i]);
            }
            continue;
        }
        if (known_shapes && !reads_lists) {
            for (size_t i = 0; i < node.outputs().size(); ++i) {
                const Value* value = node.output(i);
                if (value == nullptr) continue;
                known.types[static_cast<size_t>(value->id())] = rule.results[i];
                // The shape of a value is known even when the value is not: Shape needs no run time.
            }
            if (node.is("Shape") || node.is("Size")) {
                const Value* source = node.input(0);
                const ValueType& type = known.types[static_cast<size_t>(source->id())];
                const Tensor stand_in =
                    Tensor::view(type.dtype, type.static_shape(), static_cast<const void*>(nullptr));
                Tensor result = ref::run_node(node, {stand_in})[0];
                known.constants[static_cast<size_t>(node.output(0)->id())] = std::move(result);
                continue;
            }
            known.nodes.push_back(&node);
            continue;
        }
        for (const Value* value : node.outputs())
            if (value != nullptr) late[static_cast<size_t>(value->id())] = 1;
        (waits ? known.rest : known.dynamic).push_back(&node);
    }
    return known;
}

}  // namespace kilter::engine
